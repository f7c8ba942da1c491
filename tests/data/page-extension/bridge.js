// Stands in for the background: orders come from the page by messages, and everything that is told goes there.
const api = globalThis.browser ?? chrome;
let handler = null;
const begun = import(api.runtime.getURL('page/main.js')).then(({ start }) => start({
  epoch: 'test',
  orphaned: () => false,
  hear: (taker) => { handler = taker; },
  tell: async (what) => {
    window.postMessage({ told: JSON.stringify(what) }, '*');
    return { ok: true };
  },
}), (fault) => window.postMessage({ broken: String(fault) }, '*'));
window.addEventListener('message', async (event) => {
  if (event.source !== window || typeof event.data?.order !== 'string') return;
  await begun;
  const answer = await handler(JSON.parse(event.data.order));
  window.postMessage({ answer: JSON.stringify(answer) }, '*');
});
