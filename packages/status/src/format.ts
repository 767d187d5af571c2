/** A whole number with thin groups, `–` for what is not known, `unlimited` for no bound. */
export function count(value: number): string {
  if (value === Infinity) return 'unlimited';
  if (!Number.isFinite(value) || value < 0) return '–';
  return Math.round(value).toLocaleString('en');
}

/** Per second, with a digit behind the point below 10. */
export function rate(value: number): string {
  if (!Number.isFinite(value) || value < 0) return value === Infinity ? 'unlimited' : '–';
  return value < 10 ? value.toFixed(1) : count(value);
}

/** A duration in the unit that suits it. */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return '–';
  if (ms < 10) return `${ms.toFixed(ms < 1 ? 2 : 1)} ms`;
  if (ms < 10_000) return `${Math.round(ms)} ms`;
  if (ms < 600_000) return `${Math.round(ms / 1000)} s`;
  return `${Math.round(ms / 60_000)} min`;
}

/** A ratio as percent. */
export function percent(ratio: number): string {
  if (!Number.isFinite(ratio) || ratio < 0) return '–';
  const value = ratio * 100;
  return `${value < 10 && value > 0 ? value.toFixed(1) : Math.round(value)} %`;
}
