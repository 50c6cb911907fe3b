import { parse, stringify } from 'yaml'

/**
 * A module of its own, to be loaded only where YAML is printed or read: bundled, `await import('yaml')` itself would have
 * no named exports, because that package is CommonJS.
 */
export const toYaml = (value: unknown, quoting: 'PLAIN' | 'QUOTE_DOUBLE' = 'PLAIN'): string =>
  stringify(value, { aliasDuplicateObjects: false, defaultStringType: quoting })

export const fromYaml = (text: string): unknown => parse(text)
