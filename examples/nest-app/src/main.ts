import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.js';

const app = await NestFactory.create(AppModule, { logger: ['error', 'warn'] });
await app.listen(Number(process.env.PORT ?? 3000), '127.0.0.1');
const url = await app.getUrl();
console.log(`${url}
  /search?q=x      waits 20 ms: limited by its deadline of 300 ms
  /thumbnail/1     burns 5 ms of processor: limited by what it learns
  /report          waits 2 s: two at once
  /price/broken    its catalog fails: a breaker and a fallback
  /mail            three in 6 s for each client
  /limits          what the limits know
try: for i in 1 2 3; do curl -si ${url}/report & done; wait`);
