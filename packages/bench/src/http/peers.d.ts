// these two ship no types; these are the parts used here
declare module 'toobusy-js' {
  const toobusy: { (): boolean; shutdown(): void };
  export default toobusy;
}

declare module 'overload-protection' {
  import type { RequestHandler } from 'express';
  export default function protect(framework: 'express'): RequestHandler;
}
