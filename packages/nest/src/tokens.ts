import { hasBrand } from '@elimit/core';

// Strings and Symbol.for(…), so that two copies of this package (ES modules and CommonJS, say) mean the same.

/** Metadata of a controller or handler. */
export const MAX_CONCURRENCY = 'elimit:maxConcurrency';
export const SKIP_LIMIT = 'elimit:skipLimit';
export const RATE_LIMIT = 'elimit:rateLimit';
export const SKIP_RATE_LIMIT = 'elimit:skipRateLimit';

/** Injects the options that the module was given. */
export const ELIMIT_OPTIONS = Symbol.for('@elimit/nest/options');
/** Injects what knows the limits of every handler. */
export const HANDLER_LIMITS = Symbol.for('@elimit/nest/handler-limits');
/** Provided by nobody: an interceptor that Nest makes limits every context. */
export const INTERCEPTED_CONTEXTS = Symbol.for('@elimit/nest/intercepted-contexts');
/** Injects the module's `Guards`. */
export const ELIMIT_GUARDS = Symbol.for('@elimit/nest/guards');

/** The token of a guard, by the handler's name: `Orders.list`. Provided for names that some `@InjectGuard` asks for. */
export function guardToken(name: string): string {
  return `elimit:guard:${name}`;
}

/** The token of a breaker, by its name: `Catalog.load`. Provided for names that some `@InjectBreaker` asks for. */
export function breakerToken(name: string): string {
  return `elimit:breaker:${name}`;
}

/** True for an object with this brand on its prototype, and for its class. */
export function isBranded(value: unknown, brand: symbol): boolean {
  return hasBrand(typeof value === 'function' ? value.prototype : value, brand);
}
