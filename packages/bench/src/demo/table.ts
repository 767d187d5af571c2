import { capacityOf, type PhaseResult } from './phases.js';

const HEAD = [
  'handler',
  'protection',
  'offered/s',
  'in time/s',
  'of capacity',
  'refused/s',
  'in vain/s',
  'p50 ms',
  'p99 ms',
  'limit',
] as const;

/** What the columns mean that do not say so themselves. */
export const LEGEND =
  'In vain: answered too late, given up or failed. p50, p99: of all answers, late ones too.';

export function headLine(): string {
  return line(HEAD);
}

export function rowOf({ workload, protection, rate, load, guard }: PhaseResult): string {
  if (load === undefined) return line([workload, protection, round(rate), '…']);
  const perSecond = (count: number): string => round(count / load.seconds);
  return line([
    workload,
    protection === 'bare' ? 'none' : `limit('${protection}')`,
    perSecond(load.offered),
    perSecond(load.inTime),
    `${round((100 * load.inTime) / load.seconds / capacityOf(workload))} %`,
    perSecond(load.refused),
    perSecond(load.late + load.errors),
    ms(load.answers.p50),
    ms(load.answers.p99),
    guard === undefined ? '–' : `${guard.maxConcurrency}`,
  ]);
}

const WIDTHS = [8, 17, 10, 10, 12, 10, 10, 8, 8, 6];

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i < 2 ? cell.padEnd(WIDTHS[i] ?? 0) : cell.padStart(WIDTHS[i] ?? 0)))
    .join('');
}

/** 0 if nothing was answered. */
function ms(value: number): string {
  return value === 0 ? '–' : round(value);
}

function round(value: number): string {
  return `${Math.round(value)}`;
}
