export { type Access, fromThisMachine } from './access.js';
export { STATUS_DEFAULTS, type StatusOptions } from './options.js';
export { type StatusPages, status } from './status.js';
