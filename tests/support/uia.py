"""A stub of Windows UI Automation: a desktop of parts, behind the interfaces' own methods, numbers and failures.

It can be read and nothing else: what would focus, press or type has no method here, so that asking for it fails.
Properties come along only where a request asked for them, a part that is gone refuses, and a step to nowhere gives a
null pointer, as `comtypes` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tenuto.transports.watched import com

INVALID = 0x80070057
DEFAULTS: dict[int, Any] = {
    com.RUNTIME_ID: (), com.PROCESS_ID: 0, com.CONTROL_TYPE: 50025, com.NAME: "", com.IS_ENABLED: False,
    com.CLASS_NAME: "", com.WINDOW_HANDLE: 0, com.IS_OFFSCREEN: False, com.FRAMEWORK_ID: "", com.VALUE: "",
    com.VISUAL_STATE: 0, com.ARIA_PROPERTIES: "",
}  # fmt: skip


class COMError(Exception):
    """As comtypes raises it: the number is signed."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.hresult = code - (1 << 32)
        self.text = "nothing that is fit to be shown"
        self.details = (None, None, None, 0, None)


class Null:
    """A pointer to nothing."""

    def __bool__(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        raise ValueError("NULL COM pointer access")


@dataclass(eq=False)
class Part:
    """One element of the desktop. `fails` names the calls about it that fail, with their numbers."""

    told: dict[int, Any]
    parts: list[Part] = field(default_factory=list)
    fails: dict[str, int] = field(default_factory=dict)
    above: Part | None = None

    def hung(self) -> Part:
        """With its parts hung under it."""
        for part in self.parts:
            part.above = self
            part.hung()
        return self

    def every(self) -> Iterator[Part]:
        yield self
        for part in self.parts:
            yield from part.every()

    def remove(self) -> None:
        assert self.above is not None
        self.above.parts.remove(self)
        self.above = None


@dataclass
class Request:
    wanted: set[int] = field(default_factory=set)
    TreeFilter: Any = None

    def AddProperty(self, propertyId: int) -> int:  # noqa: N802, N803 - the interface's own names, here and below
        self.wanted.add(propertyId)
        return 0


class Element:
    def __init__(self, world: Desktop, part: Part, request: Request | None) -> None:
        self._world, self._part = world, part
        wanted = request.wanted if request is not None else set()
        world.read |= {(part.told.get(com.CONTROL_TYPE, 0), each) for each in wanted}
        self._cached = {each: part.told.get(each, DEFAULTS[each]) for each in wanted}

    def __bool__(self) -> bool:
        return True

    def GetCachedPropertyValue(self, propertyId: int) -> Any:  # noqa: N802, N803
        if propertyId not in self._cached:
            raise COMError(INVALID)
        return self._cached[propertyId]

    def BuildUpdatedCache(self, cacheRequest: Request) -> Element:  # noqa: N802, N803
        self._world.asked("BuildUpdatedCache", self._part)
        return Element(self._world, self._part, cacheRequest)

    def FindAllBuildCache(self, scope: int, condition: object, cacheRequest: Request) -> Elements:  # noqa: N802, N803
        assert scope == 2, "everything below at once has no bound"
        assert condition is self._world.everything
        self._world.asked("FindAllBuildCache", self._part)
        return Elements([Element(self._world, part, cacheRequest) for part in self._part.parts])


@dataclass
class Elements:
    found: list[Element]

    @property
    def Length(self) -> int:  # noqa: N802
        return len(self.found)

    def GetElement(self, index: int) -> Element:  # noqa: N802
        return self.found[index]


class Walker:
    def __init__(self, world: Desktop) -> None:
        self._world = world

    def _child(self, at: Element, request: Request, call: str, index: int) -> Any:
        self._world.asked(call, at._part)
        parts = at._part.parts
        return Element(self._world, parts[index], request) if parts else Null()

    def _beside(self, at: Element, request: Request, call: str, by: int) -> Any:
        self._world.asked(call, at._part)
        above = at._part.above
        assert above is not None
        index = above.parts.index(at._part) + by
        return Element(self._world, above.parts[index], request) if 0 <= index < len(above.parts) else Null()

    def GetFirstChildElementBuildCache(self, at: Element, request: Request) -> Any:  # noqa: N802
        return self._child(at, request, "GetFirstChildElementBuildCache", 0)

    def GetLastChildElementBuildCache(self, at: Element, request: Request) -> Any:  # noqa: N802
        return self._child(at, request, "GetLastChildElementBuildCache", -1)

    def GetNextSiblingElementBuildCache(self, at: Element, request: Request) -> Any:  # noqa: N802
        return self._beside(at, request, "GetNextSiblingElementBuildCache", 1)

    def GetPreviousSiblingElementBuildCache(self, at: Element, request: Request) -> Any:  # noqa: N802
        return self._beside(at, request, "GetPreviousSiblingElementBuildCache", -1)


class Desktop:
    """IUIAutomation2 over one tree. `before` is called ahead of every question, and may change the tree."""

    def __init__(self, *windows: Part) -> None:
        self.root = Part({com.CONTROL_TYPE: com.PANE}, list(windows)).hung()
        self.everything = object()
        self.before: Callable[[str, Part], None] = lambda _call, _part: None
        self.calls = 0
        self.read: set[tuple[int, int]] = set()
        self.AutoSetFocus, self.ConnectionTimeout, self.TransactionTimeout = 1, 2_000, 20_000
        self.RawViewCondition = object()

    def opened(self) -> Desktop:
        return self

    def asked(self, call: str, part: Part) -> None:
        """One question that crosses into a part's program."""
        self.calls += 1
        self.before(call, part)
        if call in part.fails:
            raise COMError(part.fails[call])
        if not self.holds(part):
            raise COMError(com.ELEMENT_NOT_AVAILABLE)

    def holds(self, part: Part) -> bool:
        at: Part | None = part
        while at is not None and at is not self.root:
            at = at.above
        return at is self.root

    @property
    def RawViewWalker(self) -> Walker:  # noqa: N802
        return Walker(self)

    def CreateCacheRequest(self) -> Request:  # noqa: N802
        return Request()

    def CreateTrueCondition(self) -> object:  # noqa: N802
        return self.everything

    def GetRootElement(self) -> Element:  # noqa: N802
        return Element(self, self.root, None)

    def ElementFromHandleBuildCache(self, hwnd: int, cacheRequest: Request) -> Element:  # noqa: N802, N803
        for part in self.root.parts:
            if part.told.get(com.WINDOW_HANDLE) == hwnd:
                self.asked("ElementFromHandleBuildCache", part)
                return Element(self, part, cacheRequest)
        raise COMError(com.ELEMENT_NOT_AVAILABLE)
