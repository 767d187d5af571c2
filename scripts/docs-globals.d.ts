// What the docs' code blocks take as given: a reader's own app and handlers.
declare const app: import('express').Express;
declare const api: import('express').Router;
declare const router: import('express').Router;
declare const server: import('node:http').Server;
declare const search: import('express').RequestHandler;
declare const handler: import('express').RequestHandler;
declare const item: import('express').RequestHandler;
declare function report(options: { signal: AbortSignal }): Promise<object>;
declare function resize(image: Uint8Array, signal?: AbortSignal): Promise<Uint8Array>;
declare const image: Uint8Array;
declare function later(afterMs: number): void;
declare const url: string;
declare const cached: Response;
declare const StepLimiter: new (options?: object) => import('@elimit/core').Limiter;
declare const myRegister: import('prom-client').Registry;
declare const meter: import('@opentelemetry/api').Meter;
