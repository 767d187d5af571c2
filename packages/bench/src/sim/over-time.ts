/** A number, or one that changes with the seconds of the run. */
export type OverTimeSpec =
  | number
  | { readonly steps: readonly Point[]; readonly cycle?: number }
  | { readonly ramp: readonly Point[] };
/** From this second on, this value. */
export type Point = readonly [atS: number, value: number];

/**
 * A value over time as straight pieces: `value + slope × (t − from)` from one start to the next.
 * Steps have slope 0; before the first point the first value holds, behind the last one the last.
 */
export class OverTime {
  readonly #from: readonly number[];
  readonly #value: readonly number[];
  readonly #slope: readonly number[];
  readonly #cycleS: number;

  constructor(spec: OverTimeSpec) {
    const from: number[] = [];
    const value: number[] = [];
    const slope: number[] = [];
    if (typeof spec === 'number') {
      from.push(0);
      value.push(spec);
      slope.push(0);
    } else {
      const ramp = 'ramp' in spec;
      const points = ramp ? spec.ramp : spec.steps;
      points.forEach(([atS, v], i) => {
        const next = points[i + 1];
        from.push(i === 0 ? 0 : atS);
        value.push(v);
        slope.push(ramp && next !== undefined ? (next[1] - v) / (next[0] - atS) : 0);
      });
      if (ramp && (points[0] as Point)[0] > 0) {
        // flat until the first point of a ramp
        from.splice(1, 0, (points[0] as Point)[0]);
        value.splice(1, 0, (points[0] as Point)[1]);
        slope.splice(0, 0, 0);
      }
    }
    this.#from = from;
    this.#value = value;
    this.#slope = slope;
    this.#cycleS = typeof spec !== 'number' && 'cycle' in spec ? (spec.cycle ?? 0) : 0;
  }

  get isConstant(): boolean {
    return this.#from.length === 1 && this.#slope[0] === 0;
  }

  at(tS: number): number {
    const local = this.#local(tS);
    const i = this.#piece(local);
    return this.#valueAt(i, local);
  }

  /** The moment after `tS` at which the integral of the value has grown by `amount`; `Infinity` if it never does. */
  whenGrownBy(amount: number, tS: number): number {
    let left = amount;
    let t = tS;
    for (;;) {
      const local = this.#local(t);
      const i = this.#piece(local);
      const v = this.#valueAt(i, local);
      const s = this.#slope[i] as number;
      const span = this.#endOf(i) - local;
      const area = span === Infinity ? (v > 0 ? Infinity : 0) : span * (v + (s * span) / 2);
      if (area >= left) {
        // v·dt + s·dt²/2 = left, in the form that also holds for s = 0
        return t + (2 * left) / (v + Math.sqrt(Math.max(0, v * v + 2 * s * left)));
      }
      if (span === Infinity) return Infinity;
      left -= area;
      // the next piece starts here; the smallest step that moves a double keeps the loop from standing still
      t = Math.max(t + span, t + t * 2 ** -50);
    }
  }

  /** Moments in `(fromS, toS)` at which a new piece begins. */
  breaks(fromS: number, toS: number): number[] {
    const found: number[] = [];
    const cycle = this.#cycleS;
    for (let lap = cycle > 0 ? Math.floor(fromS / cycle) * cycle : 0; lap < toS; lap += cycle) {
      for (const from of this.#from) {
        if (lap + from > fromS && lap + from < toS) found.push(lap + from);
      }
      if (cycle === 0) break;
    }
    return found;
  }

  #local(tS: number): number {
    return this.#cycleS > 0 ? tS - Math.floor(tS / this.#cycleS) * this.#cycleS : tS;
  }

  #piece(localS: number): number {
    let i = this.#from.length - 1;
    while (i > 0 && (this.#from[i] as number) > localS) i--;
    return i;
  }

  #valueAt(i: number, localS: number): number {
    return (
      (this.#value[i] as number) + (this.#slope[i] as number) * (localS - (this.#from[i] as number))
    );
  }

  #endOf(i: number): number {
    return this.#from[i + 1] ?? (this.#cycleS > 0 ? this.#cycleS : Infinity);
  }
}

/** Mean of the smaller of two values over `[fromS, toS)`, exact for straight pieces. */
export function meanOfSmaller(a: OverTime, b: OverTime, fromS: number, toS: number): number {
  const cuts = [fromS, ...a.breaks(fromS, toS), ...b.breaks(fromS, toS), toS].toSorted(
    (x, y) => x - y,
  );
  let area = 0;
  for (let i = 0; i + 1 < cuts.length; i++) {
    const from = cuts[i] as number;
    const span = (cuts[i + 1] as number) - from;
    if (span <= 0) continue;
    // both are straight in between: read them a quarter in from either end and draw the lines
    const [a1, a3] = [a.at(from + span / 4), a.at(from + (3 * span) / 4)];
    const [b1, b3] = [b.at(from + span / 4), b.at(from + (3 * span) / 4)];
    const gapStart = a1 - b1 - (a3 - b3 - (a1 - b1)) / 2;
    const gapEnd = a3 - b3 + (a3 - b3 - (a1 - b1)) / 2;
    // mean of max(0, a − b): the whole trapezoid, or the triangle on the side where it is positive
    const excess =
      gapStart * gapEnd >= 0
        ? Math.max(0, (gapStart + gapEnd) / 2)
        : Math.max(gapStart, gapEnd) ** 2 / (2 * Math.abs(gapStart - gapEnd));
    area += span * ((a1 + a3) / 2 - excess);
  }
  return area / (toS - fromS);
}
