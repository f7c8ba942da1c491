/**
 * The one classic script that is put into a chat page: a door between the page's own script and the background.
 *
 * It reads nothing of the document and loads the page's script only when a first order comes. Put into a page twice, the
 * second has the first say again who speaks for the page, since a background that began anew does not know, and leaves.
 * Once the extension was reloaded, or a younger script took over, it falls silent for good.
 */
(() => {
  'use strict';
  const world = /** @type {any} */ (globalThis);
  const api = /** @type {typeof chrome} */ (world.browser ?? chrome);

  function connected() {
    try {
      return typeof api.runtime?.id === 'string';
    } catch {
      return false;
    }
  }

  if (typeof world.tenutoAlive === 'function' && world.tenutoAlive()) {
    world.tenutoHello?.();
    return;
  }
  const epoch = [...crypto.getRandomValues(new Uint8Array(8))].map((one) => one.toString(16).padStart(2, '0')).join('');
  let silenced = false;
  world.tenutoEpoch = epoch;
  world.tenutoAlive = () => world.tenutoEpoch === epoch && !silenced && connected();

  /** @type {((order: any) => any) | null} */
  let handler = null;
  /** @type {Promise<void> | null} */
  let loading = null;

  const link = Object.freeze({
    epoch,
    orphaned: () => !world.tenutoAlive(),
    /** @param {object} what */
    async tell(what) {
      if (!world.tenutoAlive()) return { ok: false, reason: 'orphaned' };
      for (let attempt = 0; attempt < 5; attempt += 1) {
        try {
          const answer = await api.runtime.sendMessage({ to: 'background', epoch, ...what });
          if (answer && typeof answer.ok === 'boolean') {
            if (answer.reason === 'orphaned') silenced = true;
            return answer;
          }
        } catch {
          if (!connected()) break; // the extension was reloaded or taken away
        }
        await new Promise((resolve) => setTimeout(resolve, 200 * (attempt + 1)));
      }
      return { ok: false, reason: connected() ? 'away' : 'orphaned' };
    },
    /** @param {(order: any) => any} taker */
    hear(taker) {
      handler = taker;
    },
  });

  function load() {
    loading ??= import(api.runtime.getURL('page/main.js')).then((module) => module.start(link));
    return loading;
  }

  /** @type {Promise<unknown>} */
  let turn = Promise.resolve();
  api.runtime.onMessage.addListener((message, sender, respond) => {
    if (sender.id !== api.runtime.id || message?.to !== 'page' || message.epoch !== epoch) return undefined;
    if (!world.tenutoAlive()) return undefined;
    if (message.order === 'there') {
      respond({ epoch, url: location.href, hidden: document.hidden });
      return undefined;
    }
    turn = turn
      .then(load)
      .then(() => handler?.(message))
      .then(
        (answer) => respond(answer ?? { taken: false, reason: 'the page takes no orders' }),
        (error) => respond({ taken: false, reason: `the page's script failed: ${String(error).slice(0, 300)}` }),
      );
    return true;
  });

  world.tenutoHello = () => void link.tell({ tell: 'hello', url: location.href, hidden: document.hidden });
  world.tenutoHello();
})();
