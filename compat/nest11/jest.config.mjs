import { compat } from '../../jest.base.mjs';

export default {
  ...compat('compat/nest11', 'packages/nest', [
    '@nestjs/common',
    '@nestjs/core',
    '@nestjs/platform-express',
    '@nestjs/platform-fastify',
    '@nestjs/testing',
  ]),
  // other transports are tried with the newest Nest only: their packages are installed for that one
  testPathIgnorePatterns: ['contexts\\.test'],
};
