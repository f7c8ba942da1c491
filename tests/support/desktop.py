"""A desktop of its own for tests: a display, a window manager, a session bus, and the bus of accessibility."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PATIENCE = 120.0
LAUNCHERS = ("/usr/libexec/at-spi-bus-launcher", "/usr/lib/at-spi2-core/at-spi-bus-launcher")
CONFIG = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>session</type><listen>unix:path={socket}</listen><auth>EXTERNAL</auth>
<policy context="default">
<allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
</policy>
</busconfig>
"""


def _needed(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise AssertionError(f"{name} is not on this machine; scripts/prepare names the package")
    return found


@contextlib.contextmanager
def desktop() -> Iterator[Mapping[str, str]]:
    """The environment of a program on a desktop of its own; everything of it is ended at the end."""
    launcher = next((path for path in LAUNCHERS if os.access(path, os.X_OK)), None)
    if launcher is None:
        raise AssertionError("at-spi2-core is not on this machine; scripts/prepare names the package")
    running: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="desk-", ignore_cleanup_errors=True) as made:
        place = Path(made)
        socket = place / "bus"
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": made,
            "XDG_RUNTIME_DIR": made,
            "XDG_CACHE_HOME": made,
            "LANG": "C.UTF-8",
            "GSETTINGS_BACKEND": "memory",
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={socket}",
        }

        def start(*argv: str, pipe: int | None = None) -> None:
            with (place / "said").open("ab") as said:
                running.append(
                    subprocess.Popen(
                        argv, env=environ, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
                        pass_fds=() if pipe is None else (pipe,),
                    )
                )  # fmt: skip

        try:
            (place / "bus.conf").write_text(CONFIG.format(socket=socket))
            start(_needed("dbus-daemon"), "--nofork", f"--config-file={place / 'bus.conf'}")
            told, tell = os.pipe()
            start(
                _needed("Xvfb"), "-displayfd", str(tell), "-screen", "0", "1400x1000x24", "-nolisten", "tcp", pipe=tell
            )
            os.close(tell)
            with os.fdopen(told) as display:
                number = display.readline().strip()
            if not number:
                raise TimeoutError(f"no display: {(place / 'said').read_text()[-500:]}")
            environ["DISPLAY"] = f":{number}"
            _until(socket.exists, "the session bus")
            start(_needed("openbox"))
            start(launcher, "--launch-immediately")
            _switch_on(environ["DBUS_SESSION_BUS_ADDRESS"])
            yield environ
        finally:
            for process in reversed(running):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait(PATIENCE)


def _switch_on(bus: str) -> None:
    """Say that somebody reads the trees, as soon as the bus of accessibility is there."""
    from jeepney import DBusAddress, MessageType, Properties
    from jeepney.io.blocking import open_dbus_connection

    status = Properties(DBusAddress("/org/a11y/bus", "org.a11y.Bus", "org.a11y.Status"))

    def on() -> bool:
        with open_dbus_connection(bus) as line:
            answer = line.send_and_get_reply(status.set("IsEnabled", "b", True), timeout=PATIENCE)
        return bool(answer.header.message_type is MessageType.method_return)

    _until(on, "the bus of accessibility")


def _until(true: object, what: str) -> None:
    assert callable(true)
    for _ in range(int(PATIENCE / 0.05)):
        if true():
            return
        time.sleep(0.05)
    raise TimeoutError(f"{what} is not there")
