import { project } from '../../jest.base.mjs';

export default project('packages/fetch');
