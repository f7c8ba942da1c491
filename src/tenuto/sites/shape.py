"""What a site profile may say: its shape, and every rule that can be checked without a page.

A profile is data about one family of chat pages. It names roles by ranked selectors, states by three-valued clauses in
order, errors by patterns, and where a turn's identity stands. It cannot hold a program, a credential or a button to be
pressed other than Send and Stop. What does not fit is refused, with the place and the reason.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

SCHEMA = "tenuto-site/1"

State = Literal[
    "ready", "generating", "draft", "approval", "dialog", "error", "limit", "full", "dead", "login", "challenge",
    "loading", "settling", "unknown",
]  # fmt: skip
UrlKind = Literal["conversation", "new", "transient", "login", "other"]
ErrorClass = Literal[
    "delivery_timeout", "generation_error", "stream_lost", "network_interrupted", "rate_limited", "usage_limit",
    "conversation_full", "conversation_missing", "auth_required", "human_check", "account_blocked", "cut_short",
    "mode_mismatch", "unknown_error",
]  # fmt: skip
Role = Literal[
    "composer", "composer_root", "send", "stop", "user_turn", "assistant_turn", "turn_shell", "streaming", "finished",
    "retry", "continue", "start_new_chat", "approval_card", "dialog", "banner", "error_box", "login", "signed_in",
    "challenge", "code_block", "stopped", "exclude",
]  # fmt: skip
NEEDED: tuple[Role, ...] = ("composer", "send", "stop", "user_turn", "assistant_turn", "finished")
"""Without one of these no turn can be sent and seen to its end."""

Flag = Literal["hydrated", "generating", "composer_filled"]
Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
Host = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9.-]{0,252}$")]
Pattern = Annotated[str, StringConstraints(min_length=1, max_length=600)]
Milliseconds = Annotated[int, Field(ge=0, le=600_000)]


def _compiled(pattern: str) -> re.Pattern[str]:
    if re.search(r"\(\?P?<(?![=!])", pattern):
        raise ValueError("named groups are written differently in a browser; number them")
    if "(?" in re.sub(r"\(\?[:=!]|\(\?<[=!]", "", pattern):
        raise ValueError("this kind of group is not the same in a browser")
    try:
        return re.compile(pattern, re.IGNORECASE)
    except re.error as fault:
        raise ValueError(f"no pattern: {fault}") from None


def _checked(pattern: str) -> str:
    _compiled(pattern)
    return pattern


def _all_checked(patterns: list[str]) -> list[str]:
    return [_checked(pattern) for pattern in patterns]


class Part(BaseModel):
    """Every table of a profile: unknown names are mistakes, and nothing changes after reading."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Site(Part):
    """Which site, seen when, and under which names. `new_chat` is where a fresh conversation begins."""

    id: Word
    name: Annotated[str, StringConstraints(min_length=1, max_length=60)]
    version: Annotated[str, StringConstraints(pattern=r"^[0-9A-Za-z][0-9A-Za-z.-]{0,39}$")]
    verified_on: dt.date
    hosts: Annotated[list[Host], Field(min_length=1, max_length=8)]
    new_chat: Annotated[str, StringConstraints(pattern=r"^https://[^\s?#]+$")]


class Url(Part):
    """One kind of address. `identity` is the group of the pattern that is the conversation's own id; `canonical` is the
    address it is bound under, with {} for the id (None: as it stands, without query and fragment)."""

    regex: Pattern
    kind: UrlKind
    identity: Annotated[int, Field(ge=1, le=9)] | None = None
    canonical: str | None = None
    src: list[Word] = []

    @model_validator(mode="after")
    def _bound_by_identity(self) -> Self:
        groups = _compiled(self.regex).groups
        if self.kind == "conversation" and self.identity is None:
            raise ValueError("a conversation's address needs `identity`: without an id it cannot be bound")
        if self.kind != "conversation" and (self.identity is not None or self.canonical is not None):
            raise ValueError("only a conversation's address is bound; leave `identity` and `canonical` out")
        if self.identity is not None and self.identity > groups:
            raise ValueError(f"the pattern has {groups} groups, none is number {self.identity}")
        return self


class Evidence(Part):
    """Where a fact was seen, and when."""

    what: str
    where: str
    date: dt.date


class Labels(Part):
    """What a control is called, by language; patterns only where a language has no fixed words."""

    words: dict[str, list[str]] = {}
    regex: list[Pattern] = []
    key: str | None = None

    _readable = field_validator("regex")(_all_checked)


class Candidate(Part):
    """One way to find a role, tried in order; the first that matches decides.

    `rank` says how much it means: 1 an id or test id, 2 ARIA, 3 structure, 4 a class, 5 a label. `scope` is where it
    must lie: in a role's elements, or in the assistant's turn that is the last one of the page; `around` widens that
    turn to its closest ancestor of the selector. `outside` are roles it must not lie in. `unique`: several are
    ambiguous, never "the first". Of turns all candidates count; a match inside another match is a part of it.
    """

    css: Annotated[str, StringConstraints(min_length=1, max_length=600)]
    rank: Annotated[int, Field(ge=1, le=5)]
    src: Annotated[list[Word], Field(min_length=1)]
    scope: Role | Literal["last_assistant"] | None = None
    around: str | None = None
    outside: list[Role] = []
    unique: bool = False
    visible: bool = True
    enabled: bool | None = None
    label: Word | None = None
    not_label: Word | None = None
    variant: Word | None = None
    since: dt.date | None = None
    until: dt.date | None = None

    @model_validator(mode="after")
    def _labels_confirm(self) -> Self:
        if self.rank == 5 and self.label is None:
            raise ValueError("rank 5 is a label's; name the label, or give the rank of what it is found by")
        if self.around is not None and self.scope != "last_assistant":
            raise ValueError('`around` widens the last assistant\'s turn: it needs scope = "last_assistant"')
        return self


class Text(Part):
    """A pattern in a role's visible text, or in the document's title."""

    within: Role | Literal["title"] = Field(alias="in")
    regex: Pattern

    _readable = field_validator("regex")(_checked)


class Clause(Part):
    """Exactly one of these. Its value is true, false or unknown; unknown proves nothing."""

    has: Role | None = None
    lacks: Role | None = None
    url: UrlKind | None = None
    error: ErrorClass | Literal["any"] | None = None
    flag: Flag | None = None
    text: Text | None = None
    all: list[Clause] | None = None
    any: list[Clause] | None = None
    none: list[Clause] | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [name for name in type(self).model_fields if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"a clause says exactly one thing, not {len(given)}: {', '.join(given) or 'nothing'}")
        return self


class StateRule(Part):
    """A state of the page and when it holds. Rules are tried in order; an unknown one makes the page unknown."""

    id: State
    when: Clause
    note: str = ""


class Error(Part):
    """Words of the site that mean an error. Read only inside `within`; never in a composer, a prompt or a quotation.

    `resets` captures when it is over. `blocks`: nothing is sent while it stands. `ends`: a turn that shows it and is
    not generated any more is over. `state` is the page's state while it stands.
    """

    id: Word
    kind: ErrorClass = Field(alias="class")
    within: Annotated[list[Role], Field(min_length=1, alias="in")]
    regex: Annotated[list[Pattern], Field(min_length=1)]
    when: Clause | None = None
    resets: Pattern | None = None
    blocks: bool = True
    ends: bool = True
    state: State = "error"
    note: str = ""
    src: Annotated[list[Word], Field(min_length=1)]

    _readable = field_validator("regex")(_all_checked)

    @model_validator(mode="after")
    def _captures(self) -> Self:
        if self.resets is not None and _compiled(self.resets).groups < 1:
            raise ValueError("`resets` needs a group: what it captures is the time")
        if {"composer", "composer_root", "user_turn"} & set(self.within):
            raise ValueError("what a person or we wrote is never read for errors")
        return self


class Sending(Part):
    """How a turn is put in: ways to put text, in order, each verified whole; then one submit, never a second.

    `patience_ms` is how long the page may take to be ready for the words, `acceptance_ms` how long the site may take to
    show the turn after the submit: then what became of it is not known, and a person is asked.
    """

    type: Annotated[list[Literal["paste", "insert", "value"]], Field(min_length=1)]
    submit: Literal["click"] = "click"
    settle_ms: Milliseconds = 80
    most_characters: Annotated[int, Field(ge=1_000, le=400_000)] = 50_000
    needs_visible: bool = True
    patience_ms: Annotated[int, Field(ge=1_000, le=120_000)] = 20_000
    acceptance_ms: Annotated[int, Field(ge=1_000, le=600_000)] = 60_000


class Steering(Part):
    """How words are put into a turn under way: by Send, or by Enter where the site has no Send then."""

    submit: list[Literal["click", "enter"]] = ["click"]


class Completion(Part):
    """What makes a turn over, all at once, and for how long it must have stood still."""

    when: Clause
    stable_ms: Milliseconds
    short_characters: Annotated[int, Field(ge=0, le=10_000)] = 40
    short_stable_ms: Milliseconds
    watched_stable_ms: Milliseconds


class Identity(Part):
    """Where a turn's name stands: attributes in order of trust. `placeholders` are names of turns not yet committed."""

    keys: Annotated[list[str], Field(min_length=1)]
    placeholders: list[Pattern] = []
    number: Pattern | None = None
    virtual: bool = False

    _readable = field_validator("placeholders")(_all_checked)


class Profile(Part):
    """One site, whole."""

    schema_: Literal["tenuto-site/1"] = Field(alias="schema")
    site: Site
    url: Annotated[list[Url], Field(min_length=1)]
    evidence: Annotated[dict[Word, Evidence], Field(min_length=1)]
    labels: dict[Word, Labels] = {}
    role: dict[Role, Annotated[list[Candidate], Field(min_length=1)]]
    state: Annotated[list[StateRule], Field(min_length=1)]
    error: list[Error] = []
    send: Sending
    steer: Steering | None = None
    completion: Completion
    identity: Identity

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for role in NEEDED:
            if role not in self.role:
                raise ValueError(f"role.{role} is missing: no turn can be sent and seen without it")
        for name, candidates in self.role.items():
            for index, candidate in enumerate(candidates):
                _cited(candidate.src, self.evidence, f"role.{name}[{index}]")
                for label in (candidate.label, candidate.not_label):
                    if label is not None and label not in self.labels:
                        raise ValueError(f"role.{name}[{index}]: there are no labels.{label}")
        for index, address in enumerate(self.url):
            _cited(address.src, self.evidence, f"url[{index}]")
        for error in self.error:
            _cited(error.src, self.evidence, f"error {error.id}")
        if len({error.id for error in self.error}) != len(self.error):
            raise ValueError("two errors have one id")
        if all(address.kind != "conversation" for address in self.url):
            raise ValueError("no url is of kind conversation: nothing could ever be bound")
        if {"ready", "generating"} - {rule.id for rule in self.state}:
            raise ValueError("the states `ready` and `generating` need a rule each")
        return self


def _cited(sources: list[str], evidence: dict[str, Evidence], place: str) -> None:
    for source in sources:
        if source not in evidence:
            raise ValueError(f"{place}: there is no evidence.{source}")
