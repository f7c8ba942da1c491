"""Puts together what one turn is told.

Chooses the main text by how the task stands (first, recovery, hand-over, continue) and lets what waits ride along:
answers, a failed check, a reminder, messages oldest first, a checkpoint request. Decides nothing about whether the
turn may be made.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from tenuto import prompts
from tenuto.core import arm, decide
from tenuto.model.conversation import Conversation
from tenuto.model.ids import CommandId, MessageId, TextId, marker
from tenuto.model.message import Message, MessageKind
from tenuto.model.reconciliation import Seen
from tenuto.model.snapshot import Snapshot
from tenuto.model.work import Report, ReportKind, Standing
from tenuto.ports import Reader

#: Adapters whose agent remembers nothing from one turn to the next, so that every prompt repeats the assignment.
FORGETFUL = frozenset({"program"})


@dataclass(frozen=True)
class Told:
    """The text of one turn, and the messages that ride in it.

    `unfit` is a message that could never ride in a prompt of this task, and why; then there is no turn to be made yet.
    """

    text: str
    carried: tuple[MessageId, ...]
    unfit: tuple[MessageId, str] | None = None


class Prompter:
    """Reads our own texts and assembles prompts from them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def tell(self, seen: Seen, command_id: CommandId, now: datetime) -> Told:
        """The prompt of the next turn; raises prompts.PromptError when it cannot be made."""
        snapshot = seen.snapshot
        waiting = arm.carries_now(seen, now)
        riders: list[prompts.Part] = []
        always: list[MessageId] = []
        for message in snapshot.messages:
            if message.id not in waiting:
                continue
            riders.append(self._rider(message))
            if message.kind not in (MessageKind.WORDS, MessageKind.NEWS):
                always.append(message.id)
        if snapshot.task.standing is Standing.SILENT and snapshot.last is not None:
            riders.append(prompts.Reminder(snapshot.task.standing_reason or "it had no signal block"))
        parts = [*self._main(seen), *riders]
        prompt = prompts.assemble(parts, marker=marker(command_id), limit=snapshot.run.policy.prompt_bytes)
        unfit = self._unfit(seen, MessageId(prompt.left[0])) if prompt.left and not prompt.carried else None
        return Told(prompt.text, (*always, *(MessageId(told) for told in prompt.carried)), unfit)

    def words(
        self, seen: Seen, messages: tuple[MessageId, ...], command_id: CommandId
    ) -> tuple[str, tuple[MessageId, ...]]:
        """What is put into a turn under way, and the messages that are in it: oldest first, as many as fit."""
        parts = [self._rider(message) for message in seen.snapshot.messages if message.id in messages]
        prompt = prompts.assemble(parts, marker=marker(command_id), limit=seen.snapshot.run.policy.prompt_bytes)
        return prompt.text, tuple(MessageId(told) for told in prompt.carried)

    def _unfit(self, seen: Seen, message_id: MessageId) -> tuple[MessageId, str] | None:
        """Whether a message is too long even for the shortest prompt that this task can get."""
        task, limit = seen.snapshot.task, seen.snapshot.run.policy.prompt_bytes
        message = next(row for row in seen.snapshot.messages if row.id == message_id)
        shortest: list[prompts.Part] = [prompts.Continue(), self._rider(message)]
        if task.agent.adapter in FORGETFUL:
            shortest.append(prompts.Assignment(self._body(task.objective)))
        try:
            fits = prompts.assemble(shortest, marker=f"[tenuto:{task.id}]", limit=limit).carried
        except prompts.PromptTooLarge:
            return None  # not the message is too long; that is found out without it
        if fits:
            return None
        return message_id, f"its {message.size} bytes do not fit into a prompt of {limit}, and it is never cut"

    def _main(self, seen: Seen) -> list[prompts.Part]:
        snapshot = seen.snapshot
        task, talk = snapshot.task, snapshot.conversation
        objective = self._body(task.objective)
        reports = self._reader.reports(task.id, 20)
        said = next((report for report in reports if report.kind is ReportKind.SIGNAL), None)
        progress, step = _line(said, "progress"), _line(said, "next")
        if task.standing is Standing.NEW:
            return [prompts.First(objective)]
        if decide.cut_short(seen):
            found = self._found(seen)
            return [prompts.Recover(found, progress, step), prompts.Assignment(objective)]
        if task.agent.adapter in FORGETFUL:
            return [prompts.Continue(progress, step), prompts.Assignment(objective)]
        if task.standing is Standing.HINDERED and talk is not None and not _taken_over(snapshot, talk):
            resumed = prompts.Resume(task.standing_reason or "its program could not go on", progress, step)
            return [resumed, prompts.Assignment(objective)] if talk.turns == 0 else [resumed]
        if talk is not None and talk.turns == 0:
            told = next((report for report in reports if report.kind is ReportKind.CHECKPOINT), None)
            lines = "\n".join(f"{name}: {value}" for name, value in told.lines) if told else ""
            return [prompts.HandOver(objective, progress, step, lines)]
        return [prompts.Continue(progress, step)]

    def _found(self, seen: Seen) -> list[str]:
        """What reconciliation found, in sentences for the agent."""
        snapshot, workspace = seen.snapshot, seen.found.workspace
        last, progress = snapshot.last, snapshot.task.progress
        found = []
        if last is not None:
            found.append(f"turn {last.number} did not come to its own end: {last.detail or last.outcome}")
        if workspace is not None and workspace.head is not None:
            same = workspace.head == progress.head
            found.append(
                f"HEAD is {workspace.head[:12]}"
                + (", as before that turn" if same else ", which is newer than before that turn")
            )
        if workspace is not None and workspace.cursor is not None:
            touched = workspace.cursor != progress.cursor
            found.append(
                "files differ from what was last measured: part of that turn's work may be there"
                if touched
                else "nothing in the directory has changed since it was last measured"
            )
        return found or ["nothing more could be found out about it"]

    def _rider(self, message: Message) -> prompts.Part:
        body = self._body(message.text) if message.text is not None else ""
        match message.kind:
            case MessageKind.WORDS | MessageKind.NEWS:
                return prompts.Message(message.id, message.sender, message.created_at.isoformat(), body)
            case MessageKind.CHECKPOINT:
                return prompts.Checkpoint()
            case MessageKind.CHECK_FAILED:
                return prompts.FailedCheck(body)
            case MessageKind.ANSWER:
                return prompts.Answer(self._question(message), body, message.sender)

    def _question(self, message: Message) -> str:
        for wait in self._reader.waits(200, task_id=message.task_id, only_open=False):
            if wait.answer == message.text:
                return wait.question
        return "an earlier question"

    def _body(self, text_id: TextId) -> str:
        text = self._reader.text(text_id)
        return text.body if text is not None and text.body is not None else "(this text is not kept any more)"


def _taken_over(snapshot: Snapshot, talk: Conversation) -> bool:
    """Whether the conversation is a fresh one, which has seen nothing of the turn before."""
    return snapshot.last is not None and snapshot.last.conversation_id != talk.id


def _line(report: Report | None, name: str) -> str:
    if report is None:
        return ""
    return next((value for key, value in report.lines if key == name), "")
