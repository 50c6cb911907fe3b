/** Loaded with the first action, which costs 30 ms. By names: `import()` of the package itself has none in a bundle. */
export { Agent, fetch } from 'undici'
