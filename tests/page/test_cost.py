"""What the page's script costs: under a storm of changes, and from an order to the turn that was taken.

Processor time of the page's own thread is what is compared, once with a turn being watched and once without, so that a
busy machine changes little.
"""

from __future__ import annotations

import statistics

from playwright.sync_api import Page
from tests.page.conftest import Opened
from tests.support.lab import Lab, Past

STORM = """() => {
  const place = document.createElement('div');
  document.querySelector('main').prepend(place);
  for (let at = 0; at < 100; at += 1) place.append(document.createElement('span'));
  window.mutations = 0;
  const began = performance.now();
  setInterval(() => {
    const owed = Math.min((performance.now() - began) * 10 - window.mutations, 5000);
    for (let at = 0; at < owed; at += 1) place.children[at % 100].textContent = `${window.mutations += 1}`;
  }, 10);
}"""
LARGEST_SHARE = 0.05
SECONDS = 4.0


def busy(page: Page, seconds: float) -> tuple[float, float]:
    """The share of a core that the page's main thread used, and how many changes a second it made."""
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})

    def read() -> tuple[float, float, float]:
        metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
        now, mutations = page.evaluate("() => [performance.now() / 1000, window.mutations]")
        return metrics["TaskDuration"], now, mutations

    before = read()
    page.wait_for_timeout(seconds * 1000)
    after = read()
    tools.detach()
    passed = after[1] - before[1]
    return (after[0] - before[0]) / passed, (after[2] - before[2]) / passed


def test_a_storm_of_changes_costs_a_twentieth_of_a_core(lab: Lab, opened: Opened, page: Page) -> None:
    """DBR-091: looking is bounded by its own cost, whatever the page does."""
    past = [Past("user" if number % 2 else "assistant", f"turn {number} " * 50) for number in range(1, 41)]
    script, address = opened(past)
    lab.fault("stall")
    page.evaluate(STORM)
    alone, _ = busy(page, SECONDS)
    command = script.send(address)
    command.wait("accepted")
    watched, rate = busy(page, SECONDS)
    assert script.look()["generating"] == "yes"
    lab.resume()
    share = watched - alone
    print(f"storm of {rate:.0f} changes a second: {alone:.3f} of a core alone, {watched:.3f} watched, {share:.3f} ours")
    assert rate > 5_000, "the storm was none"
    assert share <= LARGEST_SHARE


def test_an_order_is_a_turn_soon(lab: Lab, opened: Opened) -> None:
    script, address = opened()
    took = []
    for _ in range(5):
        before = len(script.told())
        command = script.send(address)
        accepted = command.wait("accepted")
        told = script.told()[before:]
        composing = next(one for one in told if one["tell"] == "composing")
        begun = next(one for one in told if one["tell"] == "begun")
        took.append((begun["at"] - composing["at"], accepted["at"] - begun["at"]))
        command.over()
    write, take = (statistics.median(times) for times in zip(*took, strict=True))
    print(f"composing to begun {write:.0f} ms, begun to accepted {take:.0f} ms")
    assert write + take < 5_000
