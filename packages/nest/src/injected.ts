const WANTED = Symbol.for('@elimit/nest/wanted@1');

interface Wanted {
  readonly guards: Set<string>;
  readonly breakers: Set<string>;
}

/** Names that decorators have asked for, of this and other copies of the package: the module provides them. */
export function wanted(kind: keyof Wanted): Set<string> {
  const scope = globalThis as { [WANTED]?: Wanted };
  scope[WANTED] ??= { guards: new Set(), breakers: new Set() };
  return scope[WANTED][kind];
}
