import { describe, expect, test } from 'bun:test';
import fc from 'fast-check';
import { ServiceError } from '../../../src/protocol/service-error.ts';
import { QueryBudget } from '../../../src/query/nodes/query-budget.ts';
import { parseQueryString } from '../../../src/query/query-string/query-string.ts';
import { showPlan } from '../../support/show-plan.ts';
import { threadMs } from '../../support/thread-time.ts';

function parse(text: string, defaultOperator: 'and' | 'or' = 'and', field?: string) {
  return parseQueryString(text, { defaultOperator, field, budget: new QueryBudget(), where: 'query', depth: 0 });
}

function failure(text: string): ServiceError {
  try {
    parse(text);
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error(`parsed: ${text}`);
}

const forms: [text: string, plan: string][] = [
  // Words and fields
  ['soup', 'soup'],
  ['title:soup', 'title:soup'],
  ['author.name:Ada', 'author.name:Ada'],
  ['title: soup', 'title:soup'],
  ['  soup  ', 'soup'],
  ['wi-fi C++ a/b', '(+wi-fi +C++ +a/b)'],
  ['url:http://x.org/a', 'url:http://x.org/a'],
  ['at:2020-01-01T10:00:00Z', 'at:2020-01-01T10:00:00Z'],
  ['n:-5', 'n:-5'],
  ['日本語　検索', '(+日本語 +検索)'],
  // Operators: NOT before AND before OR
  ['a b', '(+a +b)'],
  ['a AND b', '(+a +b)'],
  ['a OR b', '(~a/1 ~b/1)'],
  ['a OR b AND c', '(~a/1 ~(+b +c)/1)'],
  ['a AND b OR c AND d', '(~(+a +b)/1 ~(+c +d)/1)'],
  ['a b OR c', '(~(+a +b)/1 ~c/1)'],
  ['a OR b OR c', '(~a/1 ~b/1 ~c/1)'],
  ['a NOT b', '(+a -b)'],
  ['a AND NOT b', '(+a -b)'],
  ['NOT a', '(-a)'],
  ['NOT NOT a', 'a'],
  ['a OR NOT b', '(~a/1 ~(-b)/1)'],
  ['NOT a OR b', '(~(-a)/1 ~b/1)'],
  ['a !b', '(+a -b)'],
  ['!f:a && !(b || !"c d")', '(-f:a -(~b/1 ~(-"c d")/1))'],
  ['!!a ! b! c!d', '(+a +! +b! +c!d)'],
  ['\\!a !', '(+!a +!)'],
  ['(a OR b) AND c', '(+(~a/1 ~b/1) +c)'],
  ['((a))', 'a'],
  ['a(b)c', '(+a +b +c)'],
  ['and or not', '(+and +or +not)'],
  ['ANDY ORB', '(+ANDY +ORB)'],
  ['AND:x', 'AND:x'],
  ['\\AND b', '(+AND +b)'],
  // Signs
  ['+a b', '(+a +b)'],
  ['-a b', '(+b -a)'],
  ['-a', '(-a)'],
  ['-(a OR b) c', '(+c -(~a/1 ~b/1))'],
  ['a OR -b', '(~a/1 -b)'],
  ['+a OR b', '(+a ~b/0)'],
  ['NOT -a', 'a'],
  ['rock - paper', '(+rock +- +paper)'],
  // Field groups
  ['f:(a OR b)', '(~f:a/1 ~f:b/1)'],
  ['f:(a g:b "c d")', '(+f:a +g:b +f:"c d")'],
  ['f:(a OR (b c))', '(~f:a/1 ~(+f:b +f:c)/1)'],
  ['f:(>2 AND <=5)', '(+f[gt=2] +f[lte=5])'],
  ['f:([1 TO 2] OR {4 TO 5}^2)', '(~f[gte=1 lte=2]/1 ~f[gt=4 lt=5]^2/1)'],
  ['f:(-> 5 x g:>1)', '(+f:x +g[gt=1] -f[gt=5])'],
  ['f:(/a.*/ OR b)', '(~f:/a.*//1 ~f:b/1)'],
  // Phrases
  ['"a b"', '"a b"'],
  ['f:"a b"~3', 'f:"a b"~3'],
  ['"a \\"b\\""', '"a "b""'],
  ['"a b"^2', '"a b"^2'],
  ['"a b"~1^2', '"a b"~1^2'],
  ['"AND"', '"AND"'],
  // Ranges
  ['year:>2020', 'year[gt=2020]'],
  ['year:>=2020', 'year[gte=2020]'],
  ['year:<2020', 'year[lt=2020]'],
  ['year:<= 2020', 'year[lte=2020]'],
  ['year:>-1.5', 'year[gt=-1.5]'],
  ['at:>"2020-01-01"', 'at[gt="2020-01-01"]'],
  ['at:>=2020-01-01', 'at[gte="2020-01-01"]'],
  ['code:>007', 'code[gt="007"]'],
  ['price:>1.50', 'price[gt=1.5]'],
  ['price:<1e3', 'price[lt=1000]'],
  ['year:>"2020"', 'year[gt="2020"]'],
  ['f:[1 TO b]', 'f[gte="1" lte="b"]'],
  ['f:[1 TO 007]', 'f[gte="1" lte="007"]'],
  ['f:[1 TO 9]', 'f[gte=1 lte=9]'],
  ['f:{1 TO 9}', 'f[gt=1 lt=9]'],
  ['f:[1 TO 9}', 'f[gte=1 lt=9]'],
  ['f:{1 TO 9]', 'f[gt=1 lte=9]'],
  ['f:[ a  TO  m ]', 'f[gte="a" lte="m"]'],
  ['f:["a b" TO "c]d"]', 'f[gte="a b" lte="c]d"]'],
  ['f:[1 TO *]', 'f[gte=1]'],
  ['f:{* TO 9}', 'f[lt=9]'],
  ['f:[* TO *]', 'exists(f)'],
  ['f:["*" TO b]', 'f[gte="*" lte="b"]'],
  ['at:[2020-01-01T00:00:00Z TO 2021-01-01]', 'at[gte="2020-01-01T00:00:00Z" lte="2021-01-01"]'],
  ['(year:>2020)', 'year[gt=2020]'],
  ['soup AND year:>2020', '(+soup +year[gt=2020])'],
  // Prefix
  ['pre*', 'pre*'],
  ['f:pre*', 'f:pre*'],
  ['f:*', 'exists(f)'],
  ['*', 'all'],
  ['pre\\*', 'pre*'],
  // Boosts
  ['a^2', 'a^2'],
  ['a^0.5 b', '(+a^0.5 +b)'],
  ['(a b)^2', '(+a +b)^2'],
  ['(a^2)^3', 'a^6'],
  ['f:[1 TO 9]^2', 'f[gte=1 lte=9]^2'],
  ['f:>5^2', 'f[gt=5]^2'],
  ['pre*^3', 'pre*^3'],
  ['*^2', 'all^2'],
  ['f:*^2', 'exists(f)^2'],
  ['f:[* TO *]^2', 'exists(f)^2'],
  // Escapes
  ['a\\:b', 'a:b'],
  ['a\\ b', 'a b'],
  ['\\(a\\)', '(a)'],
  ['a\\^2', 'a^2'],
  ['f\\.g:\\"x', 'f.g:"x'],
  ['\\\\', '\\'],
  ['\\😀x', '😀x'],
  // Nothing
  ['', 'all'],
  [' \t\n\u00a0', 'all'],
];

describe('the query string', () => {
  for (const [text, plan] of forms) {
    test(`${JSON.stringify(text)} means ${plan}`, () => expect(showPlan(parse(text))).toBe(plan));
  }

  const withOr: [text: string, plan: string][] = [
    ['a b', '(~a|or/1 ~b|or/1)'],
    ['a b AND c', '(~a|or/1 ~(+b|or +c|or)/1)'],
    ['+a b -c', '(+a|or ~b|or/0 -c|or)'],
    ['a NOT b', '(~a|or/1 -b|or)'],
    ['a OR NOT b', '(~a|or/1 ~(-b|or)/1)'],
    ['NOT a b', '(~b|or/1 -a|or)'],
    ['+a +b', '(+a|or +b|or)'],
    ['-a -b', '(-a|or -b|or)'],
    ['f:(a b)', '(~f:a|or/1 ~f:b|or/1)'],
  ];
  for (const [text, plan] of withOr) {
    test(`with default operator or, ${JSON.stringify(text)} means ${plan}`, () => {
      expect(showPlan(parse(text, 'or'))).toBe(plan);
    });
  }

  test('a default field is that of every word without one', () => {
    expect(showPlan(parse('a "b c" g:d year:>1', 'and', 'f'))).toBe('(+f:a +f:"b c" +g:d +year[gt=1])');
  });

  test('a smiley and other punctuation are words, not errors, unless they are brackets or quotes', () => {
    expect(showPlan(parse(':-D a :b'))).toBe('(+:-D +a +:b)');
  });

  const errors: [text: string, position: number, words: string][] = [
    ['a AND', 5, 'missing'],
    ['a OR', 4, 'missing'],
    ['NOT', 3, 'missing'],
    ['AND a', 0, 'AND needs something before it'],
    ['a OR AND b', 5, 'AND needs something before it'],
    ['(a', 0, 'never closed'],
    ['x (a OR (b)', 2, 'never closed'],
    ['a)', 1, 'never opened'],
    ['()', 1, 'missing'],
    ['say "a b', 4, 'never closed'],
    ['f:', 2, 'no value'],
    ['(f:)', 3, 'no value'],
    ['[1 TO 9]', 0, 'needs a field'],
    ['f:[1 9]', 2, '[1 TO 9]'],
    ['f:[1 TO 9', 2, 'never closed'],
    ['f:[1 TO]', 2, '[1 TO 9]'],
    ['f:>', 3, 'needs a value'],
    ['f:> )', 4, 'needs a value'],
    ['a^', 2, 'needs a number'],
    ['a^b', 2, 'needs a number'],
    ['a^-1', 2, 'needs a number'],
    ['"a b"~x', 6, 'needs a number'],
    ['"a b"~101', 9, 'at most 100'],
    ['a\\', 1, 'nothing to escape'],
  ];
  for (const [text, position, words] of errors) {
    test(`${JSON.stringify(text)} is refused at ${position}`, () => {
      const error = failure(text);
      expect(error.code).toBe('invalid_query');
      expect(error.message).toContain(words);
      expect(error.message).toContain(`at character ${position + 1};`);
    });
  }

  for (const [text, plan] of [
    ['w?ld', 'wild(w?ld)'],
    ['w*ld^2', 'wild(w*ld)^2'],
    ['*ing', 'wild(*ing)'],
    ['f:a*b*', 'f:wild(a*b*)'],
    ['a\\*b', 'a*b'],
    ['a\\*b?', 'wild(a\\*b?)'],
    ['\\??', 'wild(\\??)'],
    ['w?\\:x', 'wild(w?:x)'],
    ['**', 'all'],
    ['f:**', 'exists(f)'],
    ['soup~', 'soup~auto'],
    ['soup~2', 'soup~2'],
    ['soup~0', 'soup~0'],
    ['f:soup~1^2', 'f:soup~1^2'],
    ['~soup', 'soup~auto'],
    ['f:~soup', 'f:soup~auto'],
    ['f:~soup~1', 'f:soup~1'],
    ['f:/so[ua]p/', 'f:/so[ua]p/'],
    ['f:/so[ua]p/^3', 'f:/so[ua]p/^3'],
    ['f:/a b\\/c\\d/', 'f:/a b/c\\d/'],
  ] as const) {
    test(`${text} is ${plan}`, () => expect(showPlan(parse(text))).toBe(plan));
  }

  for (const text of ['soup~3', 'soup~0.8', 'w?ld~', '~w*', 't*e:x']) {
    test(`${text} is refused`, () => expect(failure(text).code).toBe('invalid_query'));
  }

  test('64 walks through the words of the index are taken, more are refused', () => {
    expect(() => parse('w?ld '.repeat(64))).not.toThrow();
    for (const text of ['w?ld ', 'soup~ ', 'f:/a.b/ ']) {
      expect(failure(text.repeat(65))).toMatchObject({ code: 'limit_exceeded' });
    }
  });

  test('1,024 clauses are taken, more are refused', () => {
    expect(() => parse('a '.repeat(1_024))).not.toThrow();
    expect(failure('a '.repeat(1_025)).code).toBe('limit_exceeded');
    expect(failure('(a) '.repeat(600)).code).toBe('limit_exceeded');
  });

  test('64 levels of parentheses are taken, more are refused', () => {
    expect(showPlan(parse(`${'('.repeat(64)}a${')'.repeat(64)}`))).toBe('a');
    expect(failure(`${'('.repeat(65)}a${')'.repeat(65)}`).code).toBe('limit_exceeded');
  });

  const hostile: [name: string, text: string][] = [
    ['one long word', 'a'.repeat(100_000)],
    ['escapes', '\\a'.repeat(50_000)],
    ['opened parentheses', '('.repeat(100_000)],
    ['negations', `${'NOT '.repeat(25_000)}a`],
    ['slashes', 'f:/'.repeat(33_000)],
    ['colons', ':'.repeat(100_000)],
    ['stars', '*'.repeat(100_000)],
    ['tildes', '~'.repeat(100_000)],
    ['spaces', ' '.repeat(100_000)],
    ['one phrase', `"${'a '.repeat(50_000)}"`],
    ['words', 'soup '.repeat(20_000)],
    ['a range that never ends', `f:[${'1'.repeat(100_000)}`],
    ['quotes', '"'.repeat(100_000)],
  ];
  for (const [name, text] of hostile) {
    test(`100 kB of ${name} take a time in proportion: under half a second`, () => {
      const attempt = () => {
        const start = threadMs();
        try {
          parse(text);
        } catch (error) {
          expect(error).toBeInstanceOf(ServiceError);
        }
        return threadMs() - start;
      };
      // Milliseconds, many seconds if a step looked at all others. The best of three: the first one compiles.
      expect(Math.min(attempt(), attempt(), attempt())).toBeLessThan(500);
    });
  }

  test('whatever is written, the parser plans it or answers with an error of ours', () => {
    const piece = fc.constantFrom(
      ...['a', 'b*', 'f:', '"', '"x y"', '(', ')', '[', ']', '{', '}', ' TO ', ' AND ', ' OR ', 'NOT ', '!', '+', '-'],
      ...['^', '^2', '~', '~1', '\\', '/', ':', '>', '<=', '*', '?', ' ', '1', '2020-01-01', '\u0000', '\ud800', '😀'],
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(piece, { maxLength: 30 }).map((all) => all.join('')),
    );
    fc.assert(
      fc.property(text, fc.constantFrom('and' as const, 'or' as const), (written, operator) => {
        try {
          expect(JSON.stringify(parse(written, operator))).toBeString();
        } catch (error) {
          expect(error).toBeInstanceOf(ServiceError);
          expect((error as ServiceError).status).toBeOneOf([400, 501]);
        }
      }),
      { numRuns: 3_000 },
    );
  });

  test('an escaped text is one word, whatever its characters', () => {
    const escaped = (text: string) => [...text].map((char) => `\\${char}`).join('');
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: 'binary' }), (text) => {
        expect(parse(escaped(text))).toEqual({ kind: 'match', text, operator: 'and', boost: 1 });
        expect(parse(`f:${escaped(text)}`)).toEqual({ kind: 'match', field: 'f', text, operator: 'and', boost: 1 });
      }),
    );
  });
});
