import type { GuardSnapshot } from '@elimit/core';

/** What stands in front of the handler. */
export type Protection = 'bare' | 'auto' | 'timeout';

/** What a service tells its parent: where it listens, then how its guard stands. */
export type ServiceMessage = { readonly port: number } | { readonly guard: GuardSnapshot };
