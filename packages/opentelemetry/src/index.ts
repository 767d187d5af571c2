export { type ObserveOptions, observeMetrics } from './observe-metrics.js';
