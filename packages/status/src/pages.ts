import cluster from 'node:cluster';
import { threadId } from 'node:worker_threads';
import { type FlagSnapshot, type Snapshot, type SnapshotSource, show } from '@elimit/core';
import { chart, type Line, pathsOf } from './chart.js';
import { fieldsOf } from './fields.js';
import { type Html, html, shorten } from './html.js';
import { meaningOf } from './meanings.js';
import type { Reading } from './sampler.js';

/** Cards and rows shown at most: a page stays a page however many sources there are. */
const MOST_SHOWN = 200;

const PAGES = ['status', 'connections', 'flags', 'metrics'] as const;
export type Page = (typeof PAGES)[number];

const GROUPS: readonly { readonly type: Snapshot['type']; readonly title: string }[] = [
  { type: 'guard', title: 'Guards' },
  { type: 'rateLimiter', title: 'Rate limiters' },
  { type: 'breaker', title: 'Circuit breakers' },
];

const LINES: Readonly<Record<Snapshot['type'], readonly Line[]>> = {
  guard: [
    { kind: 'limit', label: 'limit' },
    { kind: 'inflight', label: 'in flight' },
    { kind: 'refused', label: 'refused per second (own scale)' },
  ],
  rateLimiter: [{ kind: 'refused', label: 'refused per second (own scale)' }],
  breaker: [
    { kind: 'inflight', label: 'let through' },
    { kind: 'refused', label: 'refused per second (own scale)' },
  ],
  endpoint: [],
};

/** The key that a source has on pages and in live updates. */
function idOf({ name, snapshot }: Reading): string {
  const short = shorten(name);
  // long names may begin alike
  return `${snapshot.type}:${short === name ? name : `${short}${hashOf(name)}`}`;
}

/** Which sources there are: while it stays the same, updates fit the page. */
export function versionOf(readings: readonly Reading[]): string {
  return `${readings.length}-${hashOf(readings.map(idOf).join('\n'))}`;
}

/** FNV-1a. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (const character of text) {
    hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 0x01000193) >>> 0;
  }
  return hash.toString(36);
}

/** Those that pages show: the first ones of each type. */
function shownOf(readings: readonly Reading[]): Reading[] {
  const shown: Partial<Record<Snapshot['type'], number>> = {};
  return readings.filter(({ snapshot: { type } }) => {
    shown[type] = (shown[type] ?? 0) + 1;
    return shown[type] <= MOST_SHOWN;
  });
}

/** What changes on the pages from one second to the next. */
export function liveMessage(readings: readonly Reading[]): string {
  const values: Record<string, string> = {};
  const paths: Record<string, string> = {};
  for (const reading of shownOf(readings)) {
    const id = idOf(reading);
    for (const { key, text } of fieldsOf(reading.snapshot)) values[`${id}:${key}`] = text;
    const lines = LINES[reading.snapshot.type];
    if (reading.series === undefined || lines.length === 0) continue;
    pathsOf(reading.series, lines).forEach((path, i) => {
      paths[`${id}:${lines[i]?.kind}`] = path;
    });
  }
  return JSON.stringify({ version: versionOf(readings), values, paths });
}

export function statusPage(readings: readonly Reading[], base: string): Html {
  const sections = GROUPS.map(({ type, title }) => {
    const members = readings.filter(({ snapshot }) => snapshot.type === type);
    return members.length === 0
      ? html``
      : html`<section aria-labelledby="${type}"><h2 id="${type}">${title}</h2>
<div class="cards">${members.slice(0, MOST_SHOWN).map(card)}</div>${more(members)}</section>`;
  });
  const empty = readings.every(({ snapshot }) => snapshot.type === 'endpoint');
  const body = empty
    ? html`<p>Nothing to show yet: no guard, rate limiter or breaker has been made in this process.</p>`
    : html`${sections}`;
  return layout('status', body, readings, base, true);
}

function card(reading: Reading): Html {
  const id = idOf(reading);
  return html`<article class="card"><h3>${shorten(reading.name)}</h3><dl>
${fieldsOf(reading.snapshot).map(
  ({ key, label, text, isState }) =>
    html`<dt>${label}</dt><dd>${value(`${id}:${key}`, text, isState)}</dd>
`,
)}</dl>${LINES[reading.snapshot.type].length === 0 ? html`` : chart(id, reading.series, LINES[reading.snapshot.type])}</article>
`;
}

function value(key: string, text: string, isState = false): Html {
  return isState
    ? html`<span data-value="${key}" data-state class="${text}">${text}</span>`
    : html`<span data-value="${key}">${text}</span>`;
}

export function connectionsPage(readings: readonly Reading[], base: string): Html {
  const members = readings.filter(({ snapshot }) => snapshot.type === 'endpoint');
  const first = members[0];
  const columns = first === undefined ? [] : fieldsOf(first.snapshot);
  const words = new Set(['state', 'reason']);
  const body =
    members.length === 0
      ? html`<p>No endpoints: this process has made no calls through a channel.</p>`
      : html`<div class="scroll" tabindex="0" role="region" aria-label="Endpoints"><table>
<caption class="dim">nBreak: isolations since process start, of every cause. RecentErr: failed tries since the last recovery.</caption>
<thead><tr><th scope="col">endpoint</th>${columns.map(
          ({ key, label }) =>
            html`<th scope="col" class="${words.has(key) ? '' : 'n'}">${label}</th>`,
        )}</tr></thead>
<tbody>${members.slice(0, MOST_SHOWN).map(
          (reading) => html`<tr><th scope="row">${shorten(reading.name)}</th>${fieldsOf(
            reading.snapshot,
          ).map(
            ({ key, text, isState }) =>
              html`<td class="${words.has(key) ? '' : 'n'}">${value(`${idOf(reading)}:${key}`, text, isState)}</td>`,
          )}</tr>
`,
        )}</tbody></table></div>${more(members)}`;
  return layout('connections', body, readings, base, true);
}

export function flagsPage(readings: readonly Reading[], base: string, allowChanges: boolean): Html {
  const members = readings.filter(({ source }) => source.flags !== undefined);
  const note = allowChanges
    ? html`<p>Changes take effect at once, in this process only, and last until it ends. Without scripts this page is read-only.</p>`
    : html`<p>Read-only: <code>allowChanges</code> is off.</p>`;
  const sections = members.slice(0, MOST_SHOWN).map((reading) => {
    const { name, snapshot, source } = reading;
    return html`<section><h2>${shorten(name)} <small class="dim">${snapshot.type}</small></h2>
<div class="scroll" tabindex="0" role="region" aria-label="Options of ${shorten(name)}"><table>
<thead><tr><th scope="col">option</th><th scope="col">value</th><th scope="col">default</th><th scope="col">meaning</th></tr></thead>
<tbody>${flagsOf(source).map(
      (flag) => html`<tr><th scope="row">${flag.name}</th><td>${
        allowChanges && flag.live
          ? html`<form class="flag" data-type="${snapshot.type}" data-name="${name}" data-flag="${flag.name}">
<input name="value" aria-label="${flag.name} of ${shorten(name)}" value="${written(flag.value)}" autocomplete="off">
<button>Set</button> <span class="told" role="status"></span></form>`
          : html`<code>${written(flag.value)}</code>`
      }</td><td><code>${written(flag.default)}</code></td><td>${meaningOf(flag)}${flag.live ? '' : ' (set at construction)'}</td></tr>
`,
    )}</tbody></table></div></section>`;
  });
  return layout('flags', html`${note}${sections}${more(members)}`, readings, base, false);
}

/** The options of a source; none of one that throws: it may be anybody's. */
export function flagsOf(source: SnapshotSource): readonly FlagSnapshot[] {
  try {
    return source.flags?.() ?? [];
  } catch {
    return [];
  }
}

/** The value, if JSON can hold it, else words for it: a limiter of one's own may hold anything. */
export function jsonValue(option: unknown): unknown {
  if (typeof option === 'symbol') return show(option);
  try {
    JSON.stringify(option);
    return option;
  } catch {
    return show(option);
  }
}

/** A value as it is typed. */
function written(option: unknown): string {
  if (option === undefined) return '';
  if (option === Infinity) return 'Infinity';
  if (typeof option === 'function') return 'a function';
  const shown = jsonValue(option);
  return typeof shown === 'string'
    ? shorten(shown)
    : shorten(JSON.stringify([shown]).slice(1, -1), 200);
}

function more(members: readonly Reading[]): Html {
  return members.length > MOST_SHOWN
    ? html`<p>${members.length - MOST_SHOWN} more are not shown; the JSON has them.</p>`
    : html``;
}

function layout(
  page: Page,
  body: Html,
  readings: readonly Reading[],
  base: string,
  live: boolean,
): Html {
  return html`<!doctype html>
<html lang="en" data-base="${base}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${page} – elimit</title>
<link rel="stylesheet" href="${base}assets/style.css">
<link rel="icon" href="data:,">
<script src="${base}assets/live.js" defer></script>
</head>
<body>
<header><h1>elimit</h1>
<nav aria-label="Pages"><ul>${PAGES.map((each) =>
    each === page
      ? html`<li><a href="${base}${each}" aria-current="page">${each}</a></li>`
      : html`<li><a href="${base}${each}">${each}</a></li>`,
  )}</ul></nav>
<span class="dim">pid ${process.pid}${where()} <span id="live" role="status"></span></span></header>
<main data-version="${versionOf(readings)}"${live ? html` data-live="true"` : html``}>
${body}
</main>
<footer>This process only${where() === '' ? '' : ', one of several'}. As JSON: <a href="${base}${page}.json">${page}.json</a></footer>
</body>
</html>
`;
}

/** Which of several workers or threads this is; empty for the only one. */
function where(): string {
  const worker = cluster.worker === undefined ? '' : `, worker ${cluster.worker.id}`;
  return threadId === 0 ? worker : `${worker}, thread ${threadId}`;
}
