// The command behind `npm run -s vectors -- DIR…`.
import { runVectorFiles } from './run-vector-files.js';

const paths = process.argv.slice(2);
try {
  const { passed, failed, lines } = runVectorFiles(paths);
  for (const line of lines) console.log(line);
  if (passed + failed === 0) console.log('no vector file found; usage: npm run -s vectors -- DIR…');
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed > 0 || passed === 0 ? 1 : 0;
} catch (error) {
  console.log(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
