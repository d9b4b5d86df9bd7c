import type { Grammar, Group } from './grammar.ts';

/** The completion of fish. */
export function fishScript({ words, options, values }: Grammar): string {
  const lookups = [
    lookup('__sundew_words', words),
    lookup('__sundew_options', options),
    lookup('__sundew_values', values),
  ];
  return ['# fish completion of sundew\n', ...lookups, complete].join('\n');
}

function lookup(name: string, groups: readonly Group[]): string {
  const cases = groups.map(({ places, candidates }) => {
    const lines = candidates.map(({ word, meaning }) => quoted(`${word}\t${meaning}`));
    const at = places.map(quoted).join(' ');
    return `    switch "$argv[1]"\n        case ${at}\n            printf '%s\\n' ${lines.join(' ')}\n    end\n`;
  });
  return `function ${name}\n${cases.join('')}end\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
}

const complete = String.raw`function __sundew_next
    set -l current (commandline -ct)
    set -l typed (commandline -opc)
    set -l place ''
    set -l verb ''
    set -l awaited ''
    set -l ended ''
    set -l counted 0
    for word in $typed[2..-1]
        if test -n "$awaited"
            set awaited ''
        else if test -z "$ended" -a "$word" = --
            set ended 1
        else if test -z "$ended"; and string match -q -- '-*' $word
            if not string match -q -- '*=*' $word; and test -n "$(__sundew_values "$verb $word")"
                set awaited $word
            end
        else if test $counted = 0; and __sundew_words "$place" | string match -q -r -- '^'(string escape --style=regex -- $word)'\t'
            set place (string trim -- "$place $word")
            test -n "$verb"; or set verb $word
        else
            set counted (math $counted + 1)
        end
    end
    if test -n "$awaited"
        __sundew_offer '' (__sundew_values "$verb $awaited")
    else if test -z "$ended"; and string match -q -- '--*=*' $current
        set -l flag (string split -m 1 -- = $current)[1]
        __sundew_offer "$flag=" (__sundew_values "$verb $flag")
    else if test -z "$ended"; and string match -q -- '-*' $current
        __sundew_options "$place"
    else if test $counted = 0
        __sundew_offer '' (__sundew_words "$place")
    end
end

function __sundew_offer
    for line in $argv[2..-1]
        switch $line
            case ':file*'
                __fish_complete_path (string replace -- "$argv[1]" '' (commandline -ct)) | string replace -r '^' -- "$argv[1]"
            case ':text*'
            case '*'
                printf '%s\n' "$argv[1]$line"
        end
    end
end

complete -c sundew -e
complete -c sundew -f -a '(__sundew_next)'
`;
