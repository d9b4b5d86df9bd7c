import type { Grammar, Group } from './grammar.ts';

/**
 * The functions that bash and zsh share: the grammar by places, and `_sundew_next`, which takes the word that is being typed
 * and those between `sundew` and it, and prints what may stand there: a word, a tab and its meaning on each line.
 */
export function sharedFunctions({ words, options, values }: Grammar): string {
  return [
    lookup('_sundew_words', words),
    lookup('_sundew_options', options),
    lookup('_sundew_values', values),
    next,
  ].join('\n');
}

function lookup(name: string, groups: readonly Group[]): string {
  const cases = groups.map(({ places, candidates }) => {
    const lines = candidates.map(({ word, meaning }) => quoted(`${word}\t${meaning}`));
    return `  case "$1" in ${places.map(quoted).join('|')}) printf '%s\\n' ${lines.join(' ')} ;; esac\n`;
  });
  return `${name}() {\n${cases.join('')}}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

const next = String.raw`_sundew_next() {
  local current="$1" place= verb= word= known= awaited= ended= counted=0
  shift
  for word in "$@"; do
    if [[ -n $awaited ]]; then
      awaited=
    elif [[ -z $ended && $word == -- ]]; then
      ended=1
    elif [[ -z $ended && $word == -* ]]; then
      [[ $word == *=* || -z $(_sundew_values "$verb $word") ]] || awaited="$word"
    else
      known=$'\n'"$(_sundew_words "$place")"
      if [[ $counted == 0 && $known == *$'\n'"$word"$'\t'* ]]; then
        place="$place\${place:+ }$word"
        verb="\${verb:-$word}"
      else
        counted=$((counted + 1))
      fi
    fi
  done
  if [[ -n $awaited ]]; then
    _sundew_values "$verb $awaited"
  elif [[ -z $ended && $current == --*=* ]]; then
    _sundew_values "$verb \${current%%=*}"
  elif [[ -z $ended && $current == -* ]]; then
    _sundew_options "$place"
  elif [[ $counted == 0 ]]; then
    _sundew_words "$place"
  fi
}
`.replaceAll('\\$', '$');
