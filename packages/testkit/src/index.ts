export { seededRandom } from './seeded-random.js';
export { settle, VirtualClock } from './virtual-clock.js';
