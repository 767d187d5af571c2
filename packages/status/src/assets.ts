/** One style sheet, no fonts or pictures from elsewhere. */
export const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #57606a; --paper: #fff; --card: #f6f8fa; --rule: #d0d7de;
  --limit: #0969da; --inflight: #1a7f37; --refused: #b35900; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9da7b3; --paper: #0d1117; --card: #161b22; --rule: #30363d;
  --limit: #58a6ff; --inflight: #3fb950; --refused: #e3a04f; --bad: #ff8178; } }
* { box-sizing: border-box; }
body { margin: 0; font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper); }
header, main, footer { max-width: 72rem; margin: 0 auto; padding: .75rem 1rem; }
header { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; align-items: baseline; border-bottom: 1px solid var(--rule); }
header h1 { font-size: 1.1rem; margin: 0; }
nav ul { list-style: none; display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin: 0; padding: 0; }
a { color: var(--limit); }
a[aria-current] { color: inherit; font-weight: 600; text-decoration: none; }
.dim, footer { color: var(--dim); }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr)); gap: 1rem; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 6px; padding: .75rem 1rem; min-width: 0; }
.card h3 { margin: 0 0 .5rem; font-size: 1rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: 1fr auto; gap: .1rem 1rem; margin: 0; }
dt { color: var(--dim); } dd { margin: 0; text-align: right; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .75rem .3rem 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tbody th { min-width: 9rem; overflow-wrap: anywhere; font-weight: 600; }
td.n, th.n { text-align: right; white-space: nowrap; }
.open, .alert { color: var(--bad); font-weight: 600; } .halfOpen { color: var(--refused); font-weight: 600; }
.chart { margin: .5rem 0 0; } .chart svg { width: 100%; height: 5rem; display: block; }
.chart path { fill: none; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
path.limit { stroke: var(--limit); } path.inflight { stroke: var(--inflight); } path.refused { stroke: var(--refused); }
figcaption { font-size: .8rem; color: var(--dim); }
.key.limit { color: var(--limit); } .key.inflight { color: var(--inflight); } .key.refused { color: var(--refused); }
input, button { font: inherit; padding: .2rem .5rem; color: inherit; background: var(--paper); border: 1px solid var(--dim); border-radius: 4px; }
input { width: 14rem; max-width: 100%; } button { cursor: pointer; }
:focus-visible { outline: 2px solid var(--limit); outline-offset: 2px; }
.told { min-height: 1.5em; }
`;

/** Numbers, lines and changes of settings. Pages are whole without it. */
export const SCRIPT = `
'use strict';
(() => {
  const main = document.querySelector('main');
  const live = document.querySelector('#live');
  const base = document.documentElement.dataset.base;
  const say = (text) => { if (live) live.textContent = text; };

  if (main.dataset.live) {
    const source = new EventSource(base + 'events');
    source.onopen = () => say('live');
    source.onerror = () => say('not connected; trying again');
    source.onmessage = async ({ data }) => {
      const { version, values, paths } = JSON.parse(data);
      if (version !== main.dataset.version) {
        // something came or went: take the page anew, without leaving it
        const text = await (await fetch(location.href, { headers: { accept: 'text/html' } })).text();
        const fresh = new DOMParser().parseFromString(text, 'text/html').querySelector('main');
        if (fresh) { main.replaceChildren(...fresh.childNodes); main.dataset.version = fresh.dataset.version; }
        return;
      }
      for (const element of main.querySelectorAll('[data-value]')) {
        const value = values[element.dataset.value];
        if (value !== undefined && element.textContent !== value) element.textContent = value;
        if (element.dataset.state !== undefined && value !== undefined) element.className = value;
      }
      for (const element of main.querySelectorAll('[data-path]')) {
        const path = paths[element.dataset.path];
        if (path !== undefined) element.setAttribute('d', path);
      }
    };
  }

  main.addEventListener('submit', async (event) => {
    const form = event.target;
    if (!form.matches('form.flag')) return;
    event.preventDefault();
    const told = form.querySelector('.told');
    const text = form.elements.value.value;
    let value = text;
    try { value = JSON.parse(text); } catch { /* plain text: 'auto' need not be quoted */ }
    const body = JSON.stringify({ type: form.dataset.type, name: form.dataset.name, set: { [form.dataset.flag]: value } });
    told.textContent = 'saving';
    try {
      const answer = await fetch(base + 'flags', { method: 'POST', headers: { 'content-type': 'application/json' }, body });
      const { message } = await answer.json();
      told.textContent = message;
    } catch (error) {
      told.textContent = 'not saved: ' + error.message;
    }
  });
})();
`;
