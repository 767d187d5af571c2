import type { Request } from 'express';

interface Route {
  readonly path: unknown;
  readonly methods?: Readonly<Record<string, boolean | undefined>>;
}

/** A layer of a router's stack, as far as Express 4 and 5 agree; none of it is in their types. */
interface Layer {
  readonly route?: Route;
  readonly handle: { readonly stack?: readonly Layer[] };
  /** Express 5.3 returns what matched; before, it is left in `params` and `path`. */
  match(path: string): { params: object; path: string } | boolean;
  readonly params?: object;
  readonly path?: string;
  /** The template as it was written: Express 5.3. */
  readonly rawPath?: unknown;
  /** The template as an expression: Express 4. */
  readonly regexp?: RegExp;
}

interface App {
  readonly router?: unknown;
  readonly _router?: unknown;
  /** The templates at which this app and its parents are mounted, joined. */
  path(): string;
}

/** Names of routes met before, by the mount they were met at. */
const names = new WeakMap<Route, Map<string, string>>();

/**
 * `GET /api/users/:id`: method, mount path and route template of the route that handles `req`.
 * `undefined` outside of a route, and where the mount path has parameters: what stands in `baseUrl`
 * is then a piece of the URL, and a name from it would be the client's to choose.
 */
export function routeNameOf(req: Request): string | undefined {
  const route = req.route as Route | undefined;
  if (route === undefined) return undefined;
  let byMount = names.get(route);
  if (byMount === undefined) {
    byMount = new Map();
    names.set(route, byMount);
  }
  let template = byMount.get(req.baseUrl);
  if (template === undefined) {
    const mount = mountOf(req, route);
    if (mount === undefined) return undefined;
    template = `${mount}${String(route.path)}`;
    // letters' case is the client's to choose: other spellings are worked out anew
    if (mount === req.baseUrl) byMount.set(mount, template);
  }
  return `${methodOf(req, route)} ${template}`;
}

/** A GET route answers HEAD too, and the work is the same. */
function methodOf(req: Request, route: Route): string {
  return req.method === 'HEAD' && route.methods?.head !== true ? 'GET' : req.method;
}

function mountOf(req: Request, route: Route): string | undefined {
  if (req.baseUrl === '') return '';
  const app = req.app as unknown as App;
  const above = app.path();
  if (/[:*{(,]/.test(above) || !startsWith(req.baseUrl, above)) return undefined;
  const router = (app._router ?? app.router) as { readonly stack?: readonly Layer[] } | undefined;
  const below = findMount(router?.stack ?? [], req.baseUrl.slice(above.length), route);
  return below === undefined ? undefined : above + below;
}

function startsWith(text: string, start: string): boolean {
  return text.slice(0, start.length).toLowerCase() === start.toLowerCase();
}

/** The mount templates that lead from a stack to the route, along `rest` of the URL, none of them with a parameter. */
function findMount(stack: readonly Layer[], rest: string, route: Route): string | undefined {
  if (rest === '' && stack.some((layer) => layer.route === route)) return '';
  for (const layer of stack) {
    const inner = layer.handle.stack;
    if (layer.route !== undefined || inner === undefined) continue;
    const found = layer.match(rest === '' ? '/' : rest);
    if (found === false) continue;
    const { params = {}, path = '' } = found === true ? layer : found;
    if (Object.keys(params).length > 0) continue;
    const matched = path === '/' ? '' : path;
    const further = findMount(inner, rest.slice(matched.length), route);
    if (further === undefined) continue;
    const template = matched === '' ? '' : templateOf(layer, matched);
    if (template !== undefined) return template + further;
  }
  return undefined;
}

/** The template of a mount that matched; `undefined` for an expression, whose match is the client's to choose. */
function templateOf({ rawPath, regexp }: Layer, matched: string): string | undefined {
  const written = rawPath === undefined ? literalsOf(regexp) : [rawPath].flat();
  const isIt = (one: unknown): one is string =>
    typeof one === 'string' && one.toLowerCase() === matched.toLowerCase();
  const exact = written?.find(isIt);
  if (exact !== undefined) return exact;
  // a text with optional parts, and Express 5 before 5.3, which does not show what was written
  const isText = written?.every((one) => typeof one === 'string') ?? true;
  return isText ? matched.toLowerCase() : undefined;
}

/** How Express 4 ends the expression of each template that a mount was written with. */
const TEMPLATE_END = '\\/?(?=\\/|$)';
/** An expression without anything that could match more than one text. */
const LITERAL = /^(?:[^\\^$.*+?()[\]{}|]|\\\W)*$/;

/** `^\/Api\/?(?=\/|$)` was written as `/Api`; what is no text is given as the expression. */
function literalsOf(regexp: RegExp | undefined): (string | RegExp)[] | undefined {
  return regexp?.source
    .replace(/^\(\?:(.*)\)$/, '$1')
    .split(TEMPLATE_END)
    .filter((part) => part !== '')
    .map((part) => part.replace(/^\|?\^/, '').replace(/(?:\\\/\??)+$/, ''))
    .map((part) => (LITERAL.test(part) ? part.replace(/\\(.)/g, '$1') : regexp));
}
