import { AutoLimiter } from './auto.js';
import { AutoStrictLimiter } from './auto-strict.js';
import { ConstantLimiter } from './constant.js';
import { GradientLimiter } from './gradient.js';
import type { Limiter, LimiterContext } from './limiter.js';
import { limiterOf, type ParsedMaxConcurrency } from './max-concurrency.js';
import { TimeoutLimiter } from './timeout.js';
import { TimeoutStrictLimiter } from './timeout-strict.js';
import { unlimited } from './unlimited.js';

/**
 * Builds the engine for a parsed value: the one way in which engines come to be.
 *
 * @throws TypeError if a registered factory hands back something that is no limiter
 */
export function createLimiter(parsed: ParsedMaxConcurrency, context: LimiterContext): Limiter {
  switch (parsed.engine) {
    case 'constant':
      return new ConstantLimiter(parsed.settings);
    case 'unlimited':
      return unlimited;
    case 'auto':
      return new AutoLimiter(parsed.settings, context);
    case 'autoStrict':
      return new AutoStrictLimiter(parsed.settings, context);
    case 'timeout':
      return new TimeoutLimiter(parsed.settings);
    case 'timeoutStrict':
      return new TimeoutStrictLimiter(parsed.settings, context);
    case 'gradient':
      return new GradientLimiter(parsed.settings, context);
    case 'registered':
      return limiterOf(`limiter ${parsed.type}`, parsed.factory(parsed.given, context));
    case 'custom':
      break;
  }
  return parsed.limiter;
}
