import type { Verdict } from './judge.js';
import { nameOf, type Row } from './lab.js';

/** One line for each measured window of a row. */
export function linesOf(row: Row): string[] {
  return row.verdicts.map((verdict) => {
    const { fromS, toS, ok } = verdict;
    const arm = [
      row.arm,
      row.start === undefined ? '' : `from ${row.start}`,
      row.fixed === undefined ? '' : row.fixed,
    ]
      .filter((part) => part !== '')
      .join(' ');
    const marks = verdict.marks.map(
      ({ what, value, bound, atLeast, ok: held }) =>
        `${what} ${show(value)} ${atLeast ? '≥' : '≤'} ${show(bound)}${held ? '' : ' !'}`,
    );
    return `${ok ? 'ok   ' : 'SHORT'} ${row.file} ${fromS}–${toS} s  ${arm}: ${marks.join(', ')}  (${restOf(verdict)})`;
  });
}

/** What is short, the worst first: by what share of its bound a mark is missed, or of what a goodput may lose. */
export function shortLinesOf(rows: readonly Row[]): string[] {
  return rows
    .flatMap((row) =>
      row.verdicts
        .filter(({ ok }) => !ok)
        .map((verdict) => ({
          missed: Math.max(...verdict.marks.map(missedOf)),
          line: linesOf({ ...row, verdicts: [verdict] })[0] as string,
        })),
    )
    .toSorted((a, b) => b.missed - a.missed)
    .map(({ missed, line }) => `${(100 * missed).toFixed(0).padStart(4)} %  ${line}`);
}

function missedOf({ value, bound, atLeast }: Verdict['marks'][number]): number {
  if (Number.isNaN(value)) return 1;
  return atLeast ? (bound - value) / Math.max(0.01, 1 - bound) : (value - bound) / bound;
}

/** What is not marked but good to know. */
function restOf(verdict: Verdict): string {
  const marked = new Set(verdict.marks.map((mark) => mark.what));
  return [
    marked.has('goodput') ? '' : `goodput ${show(verdict.goodput)}`,
    marked.has('refused') ? '' : `refused ${show(verdict.refused)}`,
    marked.has('p99 ms') ? '' : `p99 ${show(verdict.p99Ms)} ms`,
    `late ${show(verdict.late)}`,
    `limit ${show(verdict.limit)}`,
  ]
    .filter((part) => part !== '')
    .join(', ');
}

/** Files down, arms across: the figure of the first mark, with `!` where any mark is short. */
export function tableOf(rows: readonly Row[], arms: readonly string[]): string {
  const lines: string[][] = [['scenario', 'window', 'must hold', ...arms]];
  const files = [...new Set(rows.map((row) => row.file))];
  for (const file of files) {
    const ofFile = rows.filter((row) => row.file === file);
    for (const first of ofFile[0]?.verdicts ?? []) {
      const must = first.marks
        .map((mark) => `${mark.what} ${mark.atLeast ? '≥' : '≤'} ${show(mark.bound)}`)
        .join(', ');
      const cells = arms.map((arm) => {
        const verdict = ofFile
          .find((row) => row.arm === arm)
          ?.verdicts.find((one) => one.window === first.window);
        if (verdict === undefined) return '';
        return `${verdict.marks.map((mark) => show(mark.value)).join(' / ')}${verdict.ok ? '' : ' !'}`;
      });
      lines.push([nameOf(file), `${first.fromS}–${first.toS} s`, must, ...cells]);
    }
  }
  const widths = (lines[0] as string[]).map((_, i) =>
    Math.max(...lines.map((line) => (line[i] as string).length)),
  );
  return lines
    .map((line) =>
      line
        .map((cell, i) => cell.padEnd(widths[i] as number))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** Short, and never more exact than it is. */
export function show(value: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (value === 0 || Math.abs(value) >= 1000) return value.toFixed(0);
  if (Math.abs(value) >= 10) return value.toFixed(1);
  return Math.abs(value) >= 0.1 ? value.toFixed(3) : value.toFixed(4);
}
