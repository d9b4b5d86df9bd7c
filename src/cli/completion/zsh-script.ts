import type { Grammar } from './grammar.ts';
import { sharedFunctions } from './posix-script.ts';

/** The completion of zsh, as a file of the function path or to be read by a start-up file. */
export function zshScript(grammar: Grammar): string {
  return `#compdef sundew\n# zsh completion of sundew\n\n${sharedFunctions(grammar)}\n${complete}`;
}

const complete = String.raw`_sundew() {
  local -a lines described
  local line
  lines=("\${(@f)$(_sundew_next "$words[CURRENT]" "\${(@)words[2,CURRENT-1]}")}")
  compset -P '--*='
  for line in "\${lines[@]}"; do
    case "$line" in
      ''|:text*) ;;
      :file*) _files ;;
      *$'\t') described+=("\${line%$'\t'}") ;;
      *) described+=("\${line/$'\t'/:}") ;;
    esac
  done
  if (( $#described )); then
    if [[ $PREFIX == -* ]]; then _describe -o option described; else _describe word described; fi
  fi
}

if [[ "$funcstack[1]" == _sundew ]]; then
  _sundew "$@"
else
  compdef _sundew sundew
fi
`.replaceAll('\\$', '$');
