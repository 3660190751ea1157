# Completes thinwire and stage_server: subcommands, flags and the words that a flag takes, as the
# program's own --help has them; readline completes files where nothing else fits.

_thinwire() {
  local program=${COMP_WORDS[0]/#\~/${HOME-}}
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  # Readline makes three words of --flag=value.
  if [[ $word == = ]]; then
    word=
  elif [[ $before == = ]]; then
    before=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  COMPREPLY=()

  local help subcommands subcommand=
  help=$("$program" --help 2>/dev/null) || return
  subcommands=$(sed -n '/^Subcommands:$/I,$ s/^  \([a-z][a-z_]*\) .*/\1/p' <<<"$help")
  if [[ -n $subcommands ]]; then
    if (( COMP_CWORD > 1 )) && grep -qxF -- "${COMP_WORDS[1]}" <<<"$subcommands"; then
      subcommand=${COMP_WORDS[1]}
      help=$("$program" "$subcommand" --help 2>/dev/null) || return
    elif [[ $word != -* ]]; then
      mapfile -t COMPREPLY < <(compgen -W "$subcommands" -- "$word")
      return
    fi
  fi

  # A flag that takes something stands one space before its kind: "--format TEXT:{md,csv,json}".
  if [[ $before == --* && $word != --* ]]; then
    local choices
    choices=$(sed -n -E "s/^ +(-[a-z],)?$before [A-Z]+:\{([^}]*)\}.*/\2/p" <<<"$help")
    if [[ -n $choices ]]; then
      mapfile -t COMPREPLY < <(compgen -W "${choices//,/ }" -- "$word")
      return
    fi
  fi
  if [[ $word == -* ]]; then
    local flags
    flags=$(sed -n -E 's/^  (-[a-z],)?(--[a-z_]+)( .*)?$/\2/p' <<<"$help")
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
  fi
}

complete -o bashdefault -o default -F _thinwire thinwire stage_server
