import type { Grammar } from './grammar.ts';
import { sharedFunctions } from './posix-script.ts';

/** The completion of bash, from 3.2 on. */
export function bashScript(grammar: Grammar): string {
  return `# bash completion of sundew\n\n${sharedFunctions(grammar)}\n${complete}`;
}

// Bash cuts words at "=" and ":" as well, as in a URL, and replaces only what is behind the last cut.
const complete = String.raw`_sundew() {
  local line="$COMP_LINE" token= candidate= word= last=0 at
  local -a typed
  typed=()
  for ((at = 0; at <= COMP_CWORD; at++)); do
    token="\${COMP_WORDS[at]}"
    if [[ $at -gt 0 && -n $line && $line != [[:space:]]* ]]; then
      typed[last]="\${typed[last]}$token"
    else
      last=\${#typed[@]}
      typed[last]="$token"
    fi
    line="\${line#"\${line%%[![:space:]]*}"}"
    line="\${line#"$token"}"
  done
  COMPREPLY=()
  word="\${typed[last]}"
  [[ $word == --*=* ]] && word="\${word#*=}"
  while IFS= read -r candidate; do
    candidate="\${candidate%%$'\t'*}"
    if [[ $candidate == :file ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r candidate; do COMPREPLY+=("$candidate"); done < <(compgen -f -- "$word")
    elif [[ $candidate != :text && $candidate == "$word"* ]]; then
      COMPREPLY+=("$candidate")
    fi
  done < <(_sundew_next "\${typed[last]}" "\${typed[@]:1:last-1}")
}

complete -F _sundew sundew
`.replaceAll('\\$', '$');
