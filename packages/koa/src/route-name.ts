import type { Context } from 'koa';

/** What `@koa/router` notes on a context. */
interface Routed {
  /** All layers whose path matches, whatever their methods; of every router that has seen the request. */
  readonly matched?: readonly Layer[];
  /** The path of the layer that runs. */
  readonly routerPath?: unknown;
  /** `koa-mount`'s, always without parameters. */
  readonly mountPath?: string;
}

/** A layer of middleware (`router.use`) has no methods. */
interface Layer {
  readonly path: unknown;
  readonly methods: readonly string[];
}

/**
 * `GET /api/items/:id`: method and template of the route of `@koa/router` that handles the request, prefixes
 * included; on a router, the route that it leads to. `undefined` where no router has matched.
 */
export function routeNameOf(ctx: Context): string | undefined {
  const { matched, routerPath, mountPath = '' } = ctx as unknown as Routed;
  const { method } = ctx;
  if (matched === undefined) return undefined;
  let found: Layer | undefined;
  for (const layer of matched) {
    if (!layer.methods.includes(method)) continue;
    // the last one serves it, unless the router chooses another: that one runs now
    if (found === undefined || found.path !== routerPath) found = layer;
  }
  if (found === undefined) return undefined;
  // a GET route answers HEAD too, and the work is the same
  const named = method === 'HEAD' && found.methods.includes('GET') ? 'GET' : method;
  return `${named} ${mountPath}${String(found.path)}`;
}
