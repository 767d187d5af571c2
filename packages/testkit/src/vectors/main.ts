// The command behind `npm run -s vectors -- DIR…`.
import { runVectorFiles } from './run-vector-files.js';

const USAGE =
  'usage: npm run -s vectors -- DIR…   replays every vector file in the directories, or the files named';
const paths = process.argv.slice(2);
if (paths.includes('--help')) {
  console.log(USAGE);
  process.exit(0);
}
try {
  const { passed, failed, lines } = runVectorFiles(paths);
  for (const line of lines) console.log(line);
  if (passed + failed === 0) console.log(`no vector file found; ${USAGE}`);
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
} catch (error) {
  console.log(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
