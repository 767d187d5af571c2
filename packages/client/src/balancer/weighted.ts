import type { Random } from '@elimit/core';
import { Rotation } from './rotation.js';

/** Round robin by weight. */
export class WeightedBalancer extends Rotation {
  constructor(random: Random) {
    super(({ weight }) => weight, Math.floor(random() * 2 ** 16));
  }
}
