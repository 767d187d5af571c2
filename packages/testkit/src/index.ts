export { seededRandom } from './seeded-random.js';
export { runVectorFiles, type VectorRun } from './vectors/run-vector-files.js';
export { Difference, same, type VectorKind, VectorRecord } from './vectors/vector-file.js';
export { settle, VirtualClock } from './virtual-clock.js';
