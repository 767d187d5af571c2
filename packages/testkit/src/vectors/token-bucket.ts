import {
  Bucket,
  SmoothBurstyLaw,
  SmoothWarmUpLaw,
  TokenBucketLaw,
  WarmUpCurve,
} from '@elimit/core';
import { Difference, same, type VectorKind, type VectorRecord } from './vector-file.js';

/** What the vectors' README allows: token amounts this far off, curves this share of their value. */
const AMOUNT = 1e-6;
const CURVE_RATIO = 1e-9;

/** Files of the plain bucket: `plain`, `reserve` and, with a clock for each caller, `distributed`. */
export const tokenBucketVectors: VectorKind = {
  kinds: ['plain', 'reserve', 'distributed'],
  replay(file) {
    for (const it of casesOf(file)) {
      const config = it.record('config');
      const capacity = config.number('capacity');
      const rate = config.number('tokensPerSecond');
      const replay = new PlainReplay(capacity, rate, config.number('initialTokens'));
      for (const step of it.records('steps')) replay.step(step);
    }
  },
};

/** Files of the strict smooth limiter, what it does wrong included. */
export const smoothVectors: VectorKind = {
  kinds: ['smooth-bursty', 'smooth-warmup', 'known-traps'],
  replay(file) {
    for (const it of casesOf(file)) {
      const replay = new SmoothReplay(it.record('config'));
      replay.derived(it.record('derived'));
      for (const step of it.records('steps')) replay.step(step);
    }
  },
};

/** The warm-up curve as numbers. */
export const warmUpCurveVectors: VectorKind = {
  kinds: ['warmup-curve'],
  replay(file) {
    for (const it of file.records('cases')) {
      const config = it.record('config');
      const rate = config.number('permitsPerSecond');
      const warmUpUs = config.number('warmupMicros');
      const curve = new WarmUpCurve(rate, warmUpUs, config.number('coldFactor'));
      curveIs(it, 'stableIntervalMicros', curve.intervalUs);
      curveIs(it, 'coldIntervalMicros', curve.coldIntervalUs);
      curveIs(it, 'thresholdPermits', curve.threshold);
      curveIs(it, 'maxPermits', curve.max);
      curveIs(it, 'slopeMicrosPerPermit', curve.slopeUs);
      curveIs(it, 'coolDownIntervalMicros', curve.coolUs);
      const sloped = curve.slopedUs(curve.max, curve.max);
      curveIs(it, 'microsFromColdToThreshold', sloped.us);
      curveIs(it, 'microsFromThresholdToEmpty', curve.threshold * curve.intervalUs);
      curveIs(it, 'permitsSpentDuringWarmup', sloped.tokens);
      for (const at of it.records('byStored')) {
        const priceUs = curve.priceUs(at.number('stored'));
        curveIs(at, 'intervalMicros', priceUs);
        curveIs(at, 'permitsPerSecond', 1e6 / priceUs);
      }
      for (const at of it.records('fromColdUnderFullDemand')) {
        curveIs(at, 'permitsPassed', curve.passedFromCold(at.number('elapsedMicros')));
      }
    }
  },
};

/** The cases; a name and a reason are prose. */
function casesOf(file: VectorRecord): VectorRecord[] {
  return file.records('cases').map((it) => {
    it.text('name');
    if (it.has('why')) it.text('why');
    return it;
  });
}

function curveIs(record: VectorRecord, field: string, got: number): void {
  const want = record.number(field);
  if (Math.abs(got - want) <= CURVE_RATIO * Math.abs(want)) return;
  throw new Difference(`${record.where}.${field}`, want, got);
}

/** JSON has no NaN and no Infinity: `null` stands for either. */
function amountIs(record: VectorRecord, field: string, got: number): void {
  const want = record.any(field);
  if (want === null ? !Number.isFinite(got) : Math.abs(Number(want) - got) <= AMOUNT) return;
  throw new Difference(`${record.where}.${field}`, want, got);
}

/** `3/4` or `5`. */
function fractionIs(record: VectorRecord, field: string, got: number): void {
  const [over = '', under = '1'] = record.text(field).split('/');
  const want = Number(over) / Number(under);
  if (Math.abs(want - got) <= AMOUNT) return;
  throw new Difference(`${record.where}.${field}`, want, got);
}

/** A wait, or nothing for one that never ends; a field that is not there is 0. */
function waitIs(record: VectorRecord, field: string, gotUs: number): void {
  const want = record.has(field) ? record.any(field) : 0;
  same(`${record.where}.${field}`, want, Number.isFinite(gotUs) ? gotUs : null);
}

class PlainReplay {
  readonly #bucket: Bucket;
  #capacity: number;
  #rate: number;
  #nowUs = 0;

  constructor(capacity: number, rate: number, initial: number) {
    this.#capacity = capacity;
    this.#rate = rate;
    this.#bucket = new Bucket(new TokenBucketLaw(rate, capacity), 0);
    this.#bucket.reserve(capacity - initial, 0);
  }

  step(step: VectorRecord): void {
    const op = step.text('op');
    switch (op) {
      case 'advance':
        this.#nowUs += step.number('micros');
        break;
      case 'setClock':
        this.#nowUs = step.number('nowMicros');
        break;
      case 'peek':
        amountIs(step, 'tokens', this.#tokens());
        same(`${step.where}.whole`, step.number('whole'), Math.floor(this.#tokens() + 1e-9));
        break;
      case 'tryTake':
        if (step.has('client')) step.text('client');
        if (step.has('timestampMicros')) this.#nowUs = step.number('timestampMicros');
        this.#tryTake(step, step.number('tokens'));
        break;
      case 'tryTakeEvery':
        this.#tryTakeEvery(step);
        return;
      case 'reserve':
        waitIs(step, 'waitMicros', this.#bucket.reserve(step.number('tokens'), this.#nowUs));
        break;
      case 'setRate':
        this.#rate = step.number('tokensPerSecond');
        this.#bucket.retune(this.#rate, this.#capacity, this.#nowUs);
        break;
      case 'setCapacity':
        this.#capacity = step.number('capacity');
        this.#bucket.retune(this.#rate, this.#capacity, this.#nowUs);
        break;
      default:
        throw new Difference(`${step.where}.op`, 'an operation of the plain bucket', op);
    }
    this.#compare(step);
  }

  #tokens(): number {
    return this.#bucket.tokens(this.#nowUs);
  }

  #tryTake(step: VectorRecord, n: number): void {
    const waitUs = this.#bucket.take(n, this.#nowUs);
    same(`${step.where}.granted`, step.any('granted'), waitUs === 0);
    waitIs(step, 'retryAfterMicros', waitUs);
    if (!step.has('reason')) return;
    const reason = n > this.#capacity ? 'larger-than-capacity' : 'rate-is-zero';
    same(`${step.where}.reason`, step.text('reason'), reason);
  }

  #tryTakeEvery(step: VectorRecord): void {
    const n = step.number('tokens');
    const gapUs = step.number('gapMicros');
    same(`${step.where}.startMicros`, step.number('startMicros'), this.#nowUs);
    let left = 0; // the recorded amount is that at the last try, before the last gap
    const granted = Array.from({ length: step.number('count') }, () => {
      const isGranted = this.#bucket.take(n, this.#nowUs) === 0;
      left = this.#tokens();
      this.#nowUs += gapUs;
      return isGranted;
    });
    amountIs(step, 'tokensAfter', left);
    fractionIs(step, 'tokensAfterExact', left);
    same(`${step.where}.granted`, step.list('granted'), granted);
    const count = granted.filter(Boolean).length;
    same(`${step.where}.grantedCount`, step.number('grantedCount'), count);
    same(`${step.where}.nowMicrosAfter`, step.number('nowMicrosAfter'), this.#nowUs);
  }

  #compare(step: VectorRecord): void {
    if (step.has('nowMicros')) {
      same(`${step.where}.nowMicros`, step.number('nowMicros'), this.#nowUs);
    }
    if (step.has('newestTimestampMicros')) {
      // told the newest time again, the bucket has to hold what it holds at this caller's own time
      const then = this.#bucket.tokens(step.number('newestTimestampMicros'));
      same(`${step.where}.newestTimestampMicros`, then, this.#tokens());
    }
    if (step.has('tokensAfter')) amountIs(step, 'tokensAfter', this.#tokens());
    if (step.has('tokensAfterExact')) fractionIs(step, 'tokensAfterExact', this.#tokens());
  }
}

class SmoothReplay {
  readonly #bucket: Bucket;
  readonly #warmUp: SmoothWarmUpLaw | undefined;
  readonly #burstSeconds: number;
  #rate: number;
  #nowUs = 0;

  constructor(config: VectorRecord) {
    this.#rate = config.number('permitsPerSecond');
    if (config.has('warmupMicros')) {
      const warmUpUs = config.number('warmupMicros');
      this.#warmUp = new SmoothWarmUpLaw(this.#rate, warmUpUs, config.number('coldFactor'));
      this.#burstSeconds = 0;
    } else this.#burstSeconds = config.number('maxBurstSeconds');
    const law = this.#warmUp ?? new SmoothBurstyLaw(this.#rate, this.#burst());
    this.#bucket = new Bucket(law, 0);
  }

  /** The figures that follow from rate and warm-up. */
  derived(want: VectorRecord): void {
    amountIs(want, 'stableIntervalMicros', 1e6 / this.#rate);
    const curve = this.#warmUp?.curve;
    if (curve === undefined) {
      amountIs(want, 'maxPermits', this.#burst());
      return;
    }
    amountIs(want, 'maxPermits', curve.max);
    amountIs(want, 'thresholdPermits', curve.threshold);
    amountIs(want, 'slopeMicrosPerPermit', curve.slopeUs);
    amountIs(want, 'coolDownIntervalMicros', curve.coolUs);
  }

  step(step: VectorRecord): void {
    const op = step.text('op');
    if (step.has('atMicros')) same(`${step.where}.atMicros`, step.number('atMicros'), this.#nowUs);
    switch (op) {
      case 'advance':
        this.#nowUs += step.number('micros');
        break;
      case 'acquire':
        same(`${step.where}.waitMicros`, step.any('waitMicros'), this.#acquire(step));
        break;
      case 'acquireRepeat':
        same(`${step.where}.waitMicros`, step.list('waitMicros'), this.#repeat(step, 0));
        break;
      case 'acquireEvery':
        same(
          `${step.where}.waitMicros`,
          step.list('waitMicros'),
          this.#repeat(step, step.number('gapMicros')),
        );
        break;
      case 'tryAcquire':
        this.#tryAcquire(step);
        break;
      case 'tryAcquireEvery':
        this.#tryAcquireEvery(step);
        break;
      case 'setRate':
        this.#rate = step.number('permitsPerSecond');
        this.#bucket.retune(this.#rate, this.#burst(), this.#nowUs);
        this.derived(step.record('derived'));
        break;
      default:
        throw new Difference(`${step.where}.op`, 'an operation of the smooth limiter', op);
    }
    if (step.has('nowMicros')) {
      same(`${step.where}.nowMicros`, step.number('nowMicros'), this.#nowUs);
    }
    if (step.has('storedAfter')) amountIs(step, 'storedAfter', this.#bucket.cell(0));
    if (step.has('nextFreeMicros')) {
      const field = 'nextFreeMicros';
      same(`${step.where}.${field}`, step.number(field), this.#bucket.cell(1));
    }
  }

  #burst(): number {
    return this.#burstSeconds * this.#rate;
  }

  /** Acquires and waits. */
  #acquire(step: VectorRecord): number {
    const waitUs = this.#bucket.reserve(step.number('permits'), this.#nowUs);
    this.#nowUs += waitUs;
    return waitUs;
  }

  #repeat(step: VectorRecord, gapUs: number): number[] {
    return Array.from({ length: step.number('count') }, () => {
      const waitUs = this.#acquire(step);
      this.#nowUs += gapUs;
      return waitUs;
    });
  }

  /** Refused, changing nothing, if the wait exceeds the time-out; else an acquire. */
  #tryAcquire(step: VectorRecord): void {
    const n = step.number('permits');
    const granted = this.#bucket.waitUs(n, this.#nowUs) <= step.number('timeoutMicros');
    same(`${step.where}.granted`, step.any('granted'), granted);
    const waitedUs = granted ? this.#acquire(step) : 0;
    same(`${step.where}.waitedMicros`, step.number('waitedMicros'), waitedUs);
  }

  #tryAcquireEvery(step: VectorRecord): void {
    const n = step.number('permits');
    const gapUs = step.number('gapMicros');
    const granted = Array.from({ length: step.number('count') }, () => {
      const isGranted = this.#bucket.take(n, this.#nowUs) === 0;
      this.#nowUs += gapUs;
      return isGranted;
    });
    same(`${step.where}.granted`, step.list('granted'), granted);
  }
}
