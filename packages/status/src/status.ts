import type { IncomingMessage, ServerResponse } from 'node:http';
import { SCRIPT, STYLE } from './assets.js';
import { changeFlags } from './change-flags.js';
import { LiveFeed } from './live.js';
import { meaningOf } from './meanings.js';
import { metricsJson, metricsText } from './metrics-text.js';
import { resolveStatusOptions, type StatusOptions } from './options.js';
import {
  connectionsPage,
  flagsOf,
  flagsPage,
  jsonValue,
  liveMessage,
  statusPage,
} from './pages.js';
import { type Reading, refusedShare, Sampler } from './sampler.js';

/** Serves the pages below its base path, and hands everything else on. */
export interface StatusPages {
  /**
   * For Express (`app.use('/elimit', pages)`), Nest (the same), and a bare server
   * (`createServer((req, res) => pages(req, res, () => mine(req, res)))`). Without `next`, what is not a page is a 404.
   */
  (req: IncomingMessage, res: ServerResponse, next?: (error?: unknown) => void): void;
  /** For Koa: `app.use(pages.koa)`, with `basePath`. */
  readonly koa: (
    context: { readonly req: IncomingMessage; readonly res: ServerResponse; respond?: boolean },
    next: () => Promise<unknown>,
  ) => Promise<void>;
  /** Ends the live feeds and the sampling. */
  close(): void;
}

const PATHS = new Set([
  '',
  'status',
  'connections',
  'flags',
  'metrics',
  'overloaded',
  'events',
  'assets/style.css',
  'assets/live.js',
]);

/** Nothing from elsewhere, nothing inline: a name that gets through as HTML still runs nothing. */
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const OVERLOADED_OVER_S = 5;

/**
 * Live pages about every guard, rate limiter, breaker and endpoint of this process: `/status`, `/connections`,
 * `/flags`, `/metrics` (Prometheus text) and `/overloaded` (200 or 503, for readiness probes). Each but the
 * last also as JSON, by `Accept` or with `.json`. Mount it before limits and parsers: then it answers under overload too.
 *
 * @throws TypeError or RangeError that names the option, its range and the value
 */
export function status(options: StatusOptions = {}): StatusPages {
  const server = new StatusServer(options);
  const pages = function statusPages(
    req: IncomingMessage,
    res: ServerResponse,
    next?: (error?: unknown) => void,
  ): void {
    const path = server.pathOf(req);
    if (path === undefined) {
      if (next !== undefined) next();
      else send(req, res, 404, 'text/plain', 'not found\n');
      return;
    }
    void serveOrFail(server, req, res, path, next);
  };
  return Object.assign(pages, {
    koa: async (
      context: { readonly req: IncomingMessage; readonly res: ServerResponse; respond?: boolean },
      next: () => Promise<unknown>,
    ): Promise<void> => {
      const path = server.pathOf(context.req);
      if (path === undefined) {
        await next();
        return;
      }
      context.respond = false; // the answer is ours
      await server.serve(context.req, context.res, path);
    },
    close: () => server.close(),
  });
}

async function serveOrFail(
  server: StatusServer,
  req: IncomingMessage,
  res: ServerResponse,
  path: string,
  next: ((error?: unknown) => void) | undefined,
): Promise<void> {
  try {
    await server.serve(req, res, path);
  } catch (error) {
    if (next !== undefined && !res.headersSent) next(error);
    else res.destroy();
  }
}

class StatusServer {
  readonly #options: ReturnType<typeof resolveStatusOptions>;
  readonly #sampler: Sampler;
  readonly #feed: LiveFeed;

  constructor(options: StatusOptions) {
    this.#options = resolveStatusOptions(options);
    this.#sampler = new Sampler(this.#options.registry, this.#options.timers);
    this.#feed = new LiveFeed(this.#sampler, () => liveMessage(this.#sampler.read()));
  }

  /** The path below the base, without its query; `undefined` if it is not one of ours. */
  pathOf(req: IncomingMessage): string | undefined {
    const { basePath } = this.#options;
    const [path = ''] = (req.url ?? '').split('?', 1);
    if (path !== basePath && !path.startsWith(`${basePath}/`)) return undefined;
    const below = path.slice(basePath.length + 1);
    return PATHS.has(below.replace(/\.json$/, '')) ? below : undefined;
  }

  async serve(req: IncomingMessage, res: ServerResponse, path: string): Promise<void> {
    const page = path.replace(/\.json$/, '');
    if (!(await this.#options.access(req))) {
      send(
        req,
        res,
        403,
        'text/plain',
        'not from here: see the option `access` of @elimit/status\n',
      );
      return;
    }
    if (page === 'flags' && req.method === 'POST') {
      const { status: code, message } = await changeFlags(
        req,
        () => this.#sampler.read(),
        this.#options,
      );
      // what was not read of a refused body is not worth waiting for
      if (!req.readableEnded) res.setHeader('connection', 'close');
      sendJson(req, res, code, { saved: code === 200, message });
      return;
    }
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      res.setHeader('allow', page === 'flags' ? 'GET, HEAD, POST' : 'GET, HEAD');
      send(req, res, 405, 'text/plain', 'method not allowed\n');
      return;
    }
    this.#get(req, res, page, path !== page);
  }

  #get(req: IncomingMessage, res: ServerResponse, page: string, asJson: boolean): void {
    switch (page) {
      case '':
        res.setHeader('location', `${this.#baseOf(req)}status`);
        send(req, res, 302, 'text/plain', 'status\n');
        return;
      case 'assets/style.css':
        send(req, res, 200, 'text/css', STYLE);
        return;
      case 'assets/live.js':
        send(req, res, 200, 'text/javascript', SCRIPT);
        return;
      case 'events':
        if (!this.#feed.add(req, res)) send(req, res, 503, 'text/plain', 'no more live pages\n');
        return;
      case 'overloaded':
        this.#overloaded(req, res);
        return;
      default:
        this.#page(req, res, page, asJson || wantsJson(req));
    }
  }

  #page(req: IncomingMessage, res: ServerResponse, page: string, asJson: boolean): void {
    const readings = this.#sampler.read();
    const base = this.#baseOf(req);
    const { allowChanges } = this.#options;
    switch (page) {
      case 'connections':
        if (asJson) sendJson(req, res, 200, jsonOf(readings, ['endpoint']));
        else sendHtml(req, res, connectionsPage(readings, base).text);
        return;
      case 'flags':
        if (asJson)
          sendJson(req, res, 200, { pid: process.pid, allowChanges, sources: allFlags(readings) });
        else sendHtml(req, res, flagsPage(readings, base, allowChanges).text);
        return;
      case 'metrics':
        if (asJson) sendJson(req, res, 200, { pid: process.pid, metrics: metricsJson(readings) });
        else send(req, res, 200, 'text/plain; version=0.0.4', metricsText(readings));
        return;
      default:
        if (asJson) sendJson(req, res, 200, jsonOf(readings, ['guard', 'rateLimiter', 'breaker']));
        else sendHtml(req, res, statusPage(readings, base).text);
    }
  }

  /** A guard that refuses most of what it is asked makes the process one to send no more to. */
  #overloaded(req: IncomingMessage, res: ServerResponse): void {
    const shares = this.#sampler
      .read()
      .filter(({ snapshot }) => snapshot.type === 'guard')
      .map(({ name, series }) => ({ name, refusedShare: refusedShare(series, OVERLOADED_OVER_S) }));
    const over = shares.filter(({ refusedShare: share }) => share >= this.#options.overloadedAt);
    sendJson(req, res, over.length > 0 ? 503 : 200, { overloaded: over.length > 0, guards: over });
  }

  /** Where the pages stand, with a slash at the end: a mount of the framework's, and our own base path. */
  #baseOf(
    req: IncomingMessage & { readonly baseUrl?: unknown; readonly originalUrl?: unknown },
  ): string {
    const mount = typeof req.baseUrl === 'string' ? req.baseUrl : '';
    return `${mount}${this.#options.basePath}/`;
  }

  close(): void {
    this.#feed.close();
    this.#sampler.close();
  }
}

function jsonOf(readings: readonly Reading[], types: readonly string[]): object {
  return {
    pid: process.pid,
    sources: readings
      .filter(({ snapshot }) => types.includes(snapshot.type))
      .map(({ name, snapshot, series }) => ({ ...snapshot, name, series })),
  };
}

function allFlags(readings: readonly Reading[]): object[] {
  return readings
    .filter(({ source }) => source.flags !== undefined)
    .map(({ name, snapshot, source }) => ({
      type: snapshot.type,
      name,
      flags: flagsOf(source).map((flag) => ({
        ...flag,
        value: jsonValue(flag.value),
        meaning: meaningOf(flag),
      })),
    }));
}

/** A browser asks for HTML by name; who asks for JSON by name gets it. */
function wantsJson(req: IncomingMessage): boolean {
  const accept = req.headers.accept ?? '';
  return accept.includes('application/json') && !accept.includes('text/html');
}

function sendHtml(req: IncomingMessage, res: ServerResponse, text: string): void {
  res.setHeader('content-security-policy', POLICY);
  send(req, res, 200, 'text/html', text);
}

/** JSON has no Infinity: no limit is `null` there. */
function sendJson(req: IncomingMessage, res: ServerResponse, code: number, value: object): void {
  send(req, res, code, 'application/json', `${JSON.stringify(value, null, 1)}\n`);
}

function send(
  req: IncomingMessage,
  res: ServerResponse,
  code: number,
  type: string,
  text: string,
): void {
  res.writeHead(code, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  res.end(req.method === 'HEAD' ? undefined : text);
}
