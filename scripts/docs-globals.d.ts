// What the docs' code blocks take as given: a reader's own app and handlers.
declare const app: import('express').Express;
declare const router: import('express').Router;
declare const server: import('node:http').Server;
declare const search: import('express').RequestHandler;
declare const handler: import('express').RequestHandler;
declare const myRegister: import('prom-client').Registry;
declare const meter: import('@opentelemetry/api').Meter;
