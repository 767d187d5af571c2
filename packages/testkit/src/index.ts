export { seededRandom } from './seeded-random.js';
export { type Question, type Sample, SpyLimiter } from './spy-limiter.js';
export { runVectorFiles, type VectorRun } from './vectors/run-vector-files.js';
export { Difference, same, type VectorKind, VectorRecord } from './vectors/vector-file.js';
export { type LimiterSubject, limiterSuite } from './suites/limiter.js';
export { settle, VirtualClock } from './virtual-clock.js';
