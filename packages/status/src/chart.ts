import { type Html, html } from './html.js';
import { SAMPLES, type Series } from './sampler.js';

const WIDTH = 600;
const HEIGHT = 80;

/** What is drawn of a source: its name in the legend, and where it comes from. */
export interface Line {
  readonly kind: 'limit' | 'inflight' | 'refused';
  readonly label: string;
}

/** The paths of some series in one picture, newest at the right edge. Counts share a scale; rates have their own. */
export function pathsOf(series: Series, lines: readonly Line[]): string[] {
  const top = (kinds: readonly Line['kind'][]): number =>
    Math.max(1, ...kinds.flatMap((kind) => series[kind].filter(Number.isFinite)));
  const counts = top(lines.map(({ kind }) => kind).filter((kind) => kind !== 'refused'));
  return lines.map(({ kind }) => path(series[kind], kind === 'refused' ? top([kind]) : counts));
}

function path(values: readonly number[], top: number): string {
  const step = WIDTH / (SAMPLES - 1);
  const first = SAMPLES - values.length;
  let text = '';
  values.forEach((value, i) => {
    if (!Number.isFinite(value)) return;
    const x = (first + i) * step;
    const y = HEIGHT - 2 - (value / top) * (HEIGHT - 4);
    text += `${text === '' ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`;
  });
  return text;
}

/** Lines over the last five minutes, drawn here, so that a page needs no script. `id` marks the paths for live updates. */
export function chart(id: string, series: Series | undefined, lines: readonly Line[]): Html {
  const paths = series === undefined ? lines.map(() => '') : pathsOf(series, lines);
  const about = `${lines.map(({ label }) => label).join(', ')} over the last five minutes`;
  return html`<figure class="chart">
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="${about}">
${lines.map(({ kind }, i) => html`<path class="${kind}" data-path="${id}:${kind}" d="${paths[i] ?? ''}"/>`)}
</svg>
<figcaption>${lines.map(({ kind, label }) => html`<span class="key ${kind}">${label}</span> `)}last 5 min</figcaption>
</figure>`;
}
