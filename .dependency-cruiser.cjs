// Who may import whom. The rooms of core first, then the packages; a new arrow needs a line here and a reason.
const core = '^packages/core/src/';
const engines = ['limiter', 'rate', 'breaker'];
const leaves = `${core}(outcome|options|option-rules|errors|events|random)\\.ts$`;

/** Engines may use the leaves, the shared arithmetic and their own room, and nothing else. */
const engineRooms = engines.map((room) => ({
  name: `core-${room}-is-told-everything`,
  comment: `${room}/ knows neither the other engines nor admission, and holds no clock`,
  severity: 'error',
  from: { path: `${core}${room}/` },
  to: { pathNot: [`${core}(${room}|sampling)/`, leaves] },
}));

/** What each package may enter, by its door. Peers (frameworks, clients) are checked by Biome's noUndeclaredDependencies. */
const doors = {
  core: [],
  testkit: ['core'],
  'node-http': ['core'],
  express: ['core', 'node-http'],
  koa: ['core', 'node-http'],
  nest: ['core', 'node-http'],
  client: ['core'],
  axios: ['core', 'client'],
  fetch: ['core', 'client'],
  redis: ['core'],
  status: ['core', 'node-http'],
  prometheus: ['core'],
  opentelemetry: ['core'],
};
const packageDoors = Object.entries(doors).map(([name, open]) => ({
  name: `${name}-enters-its-doors-only`,
  comment: open.length
    ? `${name} may import ${open.join(', ')}`
    : `${name} imports no other package`,
  severity: 'error',
  from: { path: `^packages/${name}/src/` },
  to: {
    path: '^packages/[^/]+/(src|test)/',
    pathNot: [`^packages/${name}/src/`, ...open.map((door) => `^packages/${door}/src/index\\.ts$`)],
  },
}));

module.exports = {
  forbidden: [
    ...engineRooms,
    {
      name: 'core-leaves-import-none',
      severity: 'error',
      from: { path: leaves },
      to: { pathNot: leaves, path: core },
    },
    {
      name: 'core-sampling-is-arithmetic',
      severity: 'error',
      from: { path: `${core}sampling/` },
      to: { pathNot: [`${core}sampling/`, leaves] },
    },
    {
      name: 'core-clock-for-admission-only',
      severity: 'error',
      from: { path: core, pathNot: [`${core}admission/`, `${core}(index|clock|timers)\\.ts$`] },
      to: { path: `${core}(clock|timers)\\.ts$` },
    },
    {
      name: 'core-metrics-read-only-types',
      comment: 'metrics/ describes snapshots and keeps figures; it knows no admission',
      severity: 'error',
      from: { path: `${core}metrics/` },
      to: { path: `${core}admission/` },
    },
    ...packageDoors,
    {
      name: 'only-tests-import-testkit',
      severity: 'error',
      from: { path: '^packages/[^/]+/src/', pathNot: '^packages/(testkit|bench)/' },
      to: { path: '^packages/testkit/' },
    },
    { name: 'no-circles', severity: 'error', from: {}, to: { circular: true } },
    { name: 'no-missing-files', severity: 'error', from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)(dist|coverage)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['@elimit/source', 'import', 'require', 'node', 'default', 'types'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.d.ts'],
    },
  },
};
