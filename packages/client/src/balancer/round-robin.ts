import type { Random } from '@elimit/core';
import { Rotation } from './rotation.js';

/** One after the other, from a random start so that many processes do not walk in step. */
export class RoundRobinBalancer extends Rotation {
  constructor(random: Random) {
    super(() => 1, Math.floor(random() * 2 ** 16));
  }
}
