import type { IncomingMessage, ServerResponse } from 'node:http';

/**
 * Middleware for Express, 4 and 5. It asks for no more than Node's own request, so that the handlers behind it on a route
 * keep the types of their parameters, which Express infers from all handlers together.
 */
export type Middleware = (
  req: IncomingMessage,
  res: ServerResponse,
  next: (error?: unknown) => void,
) => void;
