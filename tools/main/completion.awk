# Completions for bash, zsh or fish, from the table of weir --completion (see completion.c):
#   weir --completion | awk -v shell=fish -f completion.awk
BEGIN {
    FS = "\t"
    if (shell !~ /^(bash|zsh|fish)$/) {
        print "completion.awk: -v shell= must be bash, zsh or fish" >"/dev/stderr"
        exit 2
    }
}

# The first part of a help text, in single quotes.
function brief(text) {
    sub(/^((with --|of )[^:]*|[a-z]+(, [a-z]+)*( and [a-z]+)?): /, "", text) # when it has an effect, or with which formats
    sub(/ \(default[^)]*\)$/, "", text)
    if (match(substr(text, 13), /(; |: |\. )/))
        text = substr(text, 1, 11 + RSTART)
    if (length(text) > 60)
        sub(/ \(.*/, "", text)
    if (shell == "fish")
        gsub(/[\\']/, "\\\\&", text)
    else
        gsub(/'/, "'\\''", text)
    return text
}

function zsh_action(value) {
    if (value == "file") return ":file:_files"
    if (value == "folder") return ":folder:_files -/"
    if (value == "any") return ":value: "
    return value == "" ? "" : ":value:(" substr(value, 2) ")"
}

function fish_value(value) {
    if (value == "file") return " -r -F"
    if (value == "folder") return " -x -a '(__fish_complete_directories)'"
    if (value == "any") return " -x"
    return value == "" ? "" : " -x -a '" substr(value, 2) "'"
}

function bash_value(value) {
    if (value == "file") return "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\")); return ;;"
    if (value == "folder") return "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\")); return ;;"
    if (value == "any") return "return ;;"
    return "COMPREPLY=($(compgen -W \"" substr(value, 2) "\" -- \"$word\")); return ;;"
}

$2 == "" {
    names = names $1 " "
    order[++num_commands] = $1
    summary[$1] = brief($6)
    next
}

shell == "bash" {
    options[$1] = options[$1] " " $2 ($3 ? " " $3 : "") ($4 ? " " $4 : "")
    if ($5 != "")
        values = values sprintf("        %s:%s%s%s) %s\n", $1, $2, $3 ? "|" $1 ":" $3 : "", $4 ? "|" $1 ":" $4 : "", bash_value($5))
}

shell == "zsh" {
    text = brief($6)
    gsub(/\[|\]|:/, "\\\\&", text)
    for (i = 2; i <= 4; i++)
        if ($i != "")
            options[$1] = options[$1] sprintf(" \\\n            '%s%s[%s]%s'", $i, $5 == "" ? "" : i == 4 ? "+" : "=", text, zsh_action($5))
}

shell == "fish" {
    options[$1] = options[$1] sprintf("complete -c weir -n '__fish_seen_subcommand_from %s' -l %s%s%s%s -d '%s'\n", $1, substr($2, 3),
        $3 ? " -l " substr($3, 3) : "", $4 ? " -s " substr($4, 2) : "", fish_value($5), brief($6))
}

function print_bash(i) {
    print "# Completion of weir for bash.\n_weir()\n{"
    print "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options\n    COMPREPLY=()"
    print "    if ((COMP_CWORD == 1)) || [[ ${COMP_WORDS[1]} == help ]]; then"
    print "        COMPREPLY=($(compgen -W \"" names "help --help --version\" -- \"$word\"))\n        return\n    fi"
    printf "    case ${COMP_WORDS[1]}:$before in\n%s    esac\n    case ${COMP_WORDS[1]} in\n", values
    for (i = 1; i <= num_commands; i++)
        printf "        %s) options=\"%s \" ;;\n", order[i], options[order[i]]
    print "        *) return ;;\n    esac\n    if [[ $word == -* ]]; then"
    print "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n    else\n        compopt -o filenames"
    print "        COMPREPLY=($(compgen -f -- \"$word\"))\n    fi\n}\ncomplete -F _weir weir"
}

function print_zsh(i) {
    print "#compdef weir\n_weir()\n{"
    print "    local -a commands=("
    for (i = 1; i <= num_commands; i++)
        printf "        '%s:%s'\n", order[i], summary[order[i]]
    print "        'help:the help of a subcommand'\n    )"
    print "    if ((CURRENT == 2)) || [[ $words[2] == help ]]; then\n        _describe subcommand commands\n        return\n    fi"
    print "    shift words\n    ((CURRENT--))\n    case $words[1] in"
    for (i = 1; i <= num_commands; i++)
        printf "        %s) _arguments -S%s \\\n            '*:file:_files' ;;\n", order[i], options[order[i]]
    print "    esac\n}\n_weir \"$@\""
}

function print_fish(i) {
    print "# Completion of weir for fish."
    for (i = 1; i <= num_commands; i++)
        printf "complete -c weir -f -n __fish_use_subcommand -a %s -d '%s'\n", order[i], summary[order[i]]
    print "complete -c weir -f -n __fish_use_subcommand -a help -d 'the help of a subcommand'"
    print "complete -c weir -f -n '__fish_seen_subcommand_from help' -a '" names "'"
    for (i = 1; i <= num_commands; i++)
        printf "%s", options[order[i]]
}

END {
    if (shell == "bash") print_bash()
    if (shell == "zsh") print_zsh()
    if (shell == "fish") print_fish()
}
