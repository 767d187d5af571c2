import { METRICS } from '@elimit/core';
import type { Reading } from './sampler.js';

/** All metrics in Prometheus' text format, version 0.0.4. */
export function metricsText(readings: readonly Reading[]): string {
  let text = '';
  for (const metric of METRICS) {
    const lines = readings.flatMap(({ name, snapshot }) =>
      metric.samples(snapshot, name).map(({ value, labels }) => {
        const pairs = Object.entries(labels).map(([label, of]) => `${label}="${escapeLabel(of)}"`);
        return `${metric.name}{${pairs.join(',')}} ${value}\n`;
      }),
    );
    if (lines.length === 0) continue;
    text += `# HELP ${metric.name} ${metric.help}\n# TYPE ${metric.name} ${metric.kind}\n${lines.join('')}`;
  }
  return text;
}

/** The same as data. */
export function metricsJson(readings: readonly Reading[]): object[] {
  return METRICS.map((metric) => ({
    name: metric.name,
    kind: metric.kind,
    unit: metric.unit,
    help: metric.help,
    samples: readings.flatMap(({ snapshot, name }) => metric.samples(snapshot, name)),
  }));
}

function escapeLabel(text: string): string {
  return text.replace(/\\/g, '\\\\').replace(/\n/g, '\\n').replace(/"/g, '\\"');
}
