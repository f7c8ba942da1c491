"""What of Windows UI Automation is used: its numbers, its methods by their own names, and how its object is had.

Nothing is decided here. The protocols say what `comtypes` makes of the interfaces that are used, so that what walks
them can be tried against objects that stand for them; every call of theirs may fail with an error that carries the
number of what went wrong. `created` is the only place that needs Windows, and nobody has run it there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, Protocol

from tenuto.transports.watched.trees import NotLooked

#: Properties by their numbers.
RUNTIME_ID, PROCESS_ID, CONTROL_TYPE, NAME, IS_ENABLED = 30000, 30002, 30003, 30005, 30010
CLASS_NAME, WINDOW_HANDLE, IS_OFFSCREEN, FRAMEWORK_ID = 30012, 30020, 30022, 30024
VALUE, VISUAL_STATE, ARIA_PROPERTIES = 30045, 30075, 30102

#: Sorts of controls by their numbers.
BUTTON, CALENDAR, CHECK_BOX, COMBO_BOX, EDIT, LINK, IMAGE, LIST_ITEM, LIST, MENU, MENU_BAR, MENU_ITEM = range(
    50000, 50012
)
PROGRESS_BAR, RADIO_BUTTON, SCROLL_BAR, SLIDER, SPINNER, STATUS_BAR = range(50012, 50018)
TEXT, TOOL_BAR, TOOL_TIP, TREE, TREE_ITEM = range(50020, 50025)
THUMB, DATA_GRID, DATA_ITEM, DOCUMENT, SPLIT_BUTTON, WINDOW, PANE = range(50027, 50034)
HEADER, HEADER_ITEM, TABLE, TITLE_BAR, SEPARATOR = range(50034, 50039)

CHILDREN: Final = 2
"""The scope of a search that looks at children only."""

MINIMIZED: Final = 2
"""The state of a window that lies in the task bar."""

#: What went wrong, by its number.
ELEMENT_NOT_AVAILABLE, TIMED_OUT, ACCESS_DENIED = 0x80040201, 0x80131505, 0x80070005
DISCONNECTED, SERVER_DIED, SERVER_UNAVAILABLE, CALL_FAILED = 0x80010108, 0x80010007, 0x800706BA, 0x800706BE
NO_SUCH_WINDOW, WAIT_TIMED_OUT = 0x80070578, 0x800705B4
GONE: Final = frozenset(
    {ELEMENT_NOT_AVAILABLE, DISCONNECTED, SERVER_DIED, SERVER_UNAVAILABLE, CALL_FAILED, NO_SUCH_WINDOW}
)
LATE: Final = frozenset({TIMED_OUT, WAIT_TIMED_OUT})

LIBRARY: Final = ("{944DE083-8FB8-45CF-BCB7-C477ACB2F897}", 1, 0)
"""The type library of UI Automation. By its number and not by a file's name, which would be looked for here first."""


class Request(Protocol):
    """IUIAutomationCacheRequest: which properties come along with an element."""

    TreeFilter: Any

    def AddProperty(self, propertyId: int) -> object: ...  # noqa: N802, N803 - its own names


class Element(Protocol):
    """IUIAutomationElement. A null pointer is false."""

    def __bool__(self) -> bool: ...

    def GetCachedPropertyValue(self, propertyId: int) -> Any: ...  # noqa: N802, N803

    def BuildUpdatedCache(self, cacheRequest: Request) -> Element: ...  # noqa: N802, N803

    def FindAllBuildCache(self, scope: int, condition: Any, cacheRequest: Request) -> Elements: ...  # noqa: N802, N803


class Elements(Protocol):
    """IUIAutomationElementArray."""

    @property
    def Length(self) -> int: ...  # noqa: N802

    def GetElement(self, index: int) -> Element: ...  # noqa: N802


Step = Callable[[Element, Request], Element]


class Walker(Protocol):
    """IUIAutomationTreeWalker. Where there is none, a null pointer is given back."""

    GetFirstChildElementBuildCache: Step
    GetLastChildElementBuildCache: Step
    GetNextSiblingElementBuildCache: Step
    GetPreviousSiblingElementBuildCache: Step


class Automation(Protocol):
    """IUIAutomation2. Times in milliseconds."""

    AutoSetFocus: int
    ConnectionTimeout: int
    TransactionTimeout: int

    @property
    def RawViewWalker(self) -> Walker: ...  # noqa: N802

    @property
    def RawViewCondition(self) -> Any: ...  # noqa: N802

    def CreateCacheRequest(self) -> Request: ...  # noqa: N802

    def CreateTrueCondition(self) -> Any: ...  # noqa: N802

    def GetRootElement(self) -> Element: ...  # noqa: N802

    def ElementFromHandleBuildCache(self, hwnd: int, cacheRequest: Request) -> Element: ...  # noqa: N802, N803


def number(fault: BaseException) -> int | None:
    """The number of what went wrong, unsigned; None for what no interface of these fails with."""
    told = getattr(fault, "hresult", None)
    return told & 0xFFFFFFFF if isinstance(told, int) else None


_THREAD = threading.local()
_ONE = threading.Lock()


def created() -> Automation:
    """The object that everything is asked of, for the thread that calls. Raises NotLooked where it cannot be had.

    A thread stays in its apartment until it ends: what was asked for lives in it.
    """
    with _ONE:  # what describes the library is written by whoever asks for it first
        return _created()


def _created() -> Automation:
    import sys

    if "comtypes" not in sys.modules:
        sys.coinit_flags = 0  # type: ignore[attr-defined]  # the apartment of many threads, for the one that imports it
    try:
        import comtypes
        import comtypes.client
    except ImportError:
        raise NotLooked("comtypes is not installed", "pip install 'tenuto[accessibility]'") from None
    try:
        if not getattr(_THREAD, "entered", False):
            try:
                comtypes.CoInitializeEx(comtypes.COINIT_MULTITHREADED)
            except OSError:
                pass  # the thread is in an apartment already
            _THREAD.entered = True
        module = comtypes.client.GetModule(LIBRARY)
        made: Automation = comtypes.client.CreateObject(module.CUIAutomation8, interface=module.IUIAutomation2)
    except Exception as fault:  # noqa: BLE001 - a library that is not registered, a directory that cannot be written
        code = number(fault)
        said = f"{code:#x}" if code is not None else type(fault).__name__
        raise NotLooked(f"UI Automation cannot be had: {said}", "it needs Windows 8 or newer, and a desktop") from None
    return made
