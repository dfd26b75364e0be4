# The steps of .ci/run: runs commands, counts how they end, and closes with what failed. To be sourced
# by bash.

passed=0
failed=0
work=$(mktemp -d)
failures=$work/failures
: >"$failures"
second_attempts=$work/second_attempts
: >"$second_attempts"
durations=$work/durations
: >"$durations"
step_seconds=$work/step_seconds
: >"$step_seconds"
trap end_steps EXIT
chmod 755 "$work"

# Ends what still runs, with the processes that it started.
end_steps() {
  local group
  for group in $(jobs -p); do kill -- "-$group" 2>/dev/null; done
  rm -rf "$work"
}

note() { printf '\n== %s (%s)\n' "$1" "$(date +%T)"; }

# Keeps the name of a failure, and the last lines of standard input, for the closing list.
keep_failure() {
  local name=$1 lines=$2
  {
    printf -- '-- FAILED: %s\n' "$name"
    tail -n "$lines" | cut -c 1-400
  } >>"$failures"
}

# Keeps the duration of a step, which began when the shell had run for the given seconds.
keep_seconds() {
  local name=$1 begun=$2
  printf '%5d s  %s\n' "$((SECONDS - begun))" "$name" >>"$step_seconds"
}

# Counts one check, which passed when its command ended with 0.
count_check() {
  local name=$1 code=$2 log=$3
  if [ "$code" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$name"
    keep_failure "$name" 25 <"$log"
  fi
}

# One check is one command. It runs alone.
check() {
  local name=$1 log=$work/check.log begun code
  shift
  end_beside
  note "$name"
  begun=$SECONDS
  "$@" 2>&1 | tee "$log"
  code=${PIPESTATUS[0]}
  keep_seconds "$name" "$begun"
  count_check "$name" "$code" "$log"
}

# The names and beginnings of the checks that run beside each other, by their numbers. A check that
# ends writes its exit code and its number into the pipe.
declare -A beside_names=() beside_times=() beside_begun=()
beside_count=0
mkfifo "$work/ended"
exec 9<>"$work/ended"

# Two more than the number of processors, because some commands wait, for a server or for a time.
beside_max=$(($(nproc) + 2))

# Like check, but the command runs beside those before and after it. Its output is printed whole once
# it has ended.
beside() {
  local name=$1
  shift
  while [ "${#beside_names[@]}" -ge "$beside_max" ]; do end_one_beside; done
  beside_count=$((beside_count + 1))
  beside_names[$beside_count]=$name
  beside_times[$beside_count]=$(date +%T)
  beside_begun[$beside_count]=$SECONDS
  # Gives the command a process group of its own.
  set -m
  {
    "$@" >"$work/beside.$beside_count.log" 2>&1 9>&-
    echo "$? $beside_count" >&9
  } &
  set +m
}

end_one_beside() {
  local code number log
  read -r code number <&9
  log=$work/beside.$number.log
  printf '\n== %s (%s to %s)\n' "${beside_names[$number]}" "${beside_times[$number]}" "$(date +%T)"
  cat "$log"
  keep_seconds "${beside_names[$number]}" "${beside_begun[$number]}"
  count_check "${beside_names[$number]}" "$code" "$log"
  rm "$log"
  unset "beside_names[$number]" "beside_times[$number]" "beside_begun[$number]"
}

end_beside() {
  while [ "${#beside_names[@]}" -gt 0 ]; do end_one_beside; done
}

# Lists the tests of a `bun test` run, each with its milliseconds and its file.
durations_in() {
  awk '
    / tests? (failed|skipped):$/ { exit }
    /_test\.tsx?:$/ { file = substr($0, 1, length($0) - 1) }
    /^\((pass|fail)\) .*\[[0-9.]+m?s\]$/ {
      match($0, /\[[0-9.]+m?s\]$/)
      shown = substr($0, RSTART + 1, RLENGTH - 2)
      name = substr($0, 8, RSTART - 9)
      printf "%7d ms  %s: %s\n", (shown ~ /ms$/ ? shown + 0 : shown * 1000), file, name
    }' "$1"
}

# Adds the closing figures of a `bun test` run. A run that gave none, or failed without a failing
# test, counts as one failure.
tests() {
  local name=$1 log=$work/tests.log begun code pass fail
  shift
  end_beside
  note "$name"
  begun=$SECONDS
  "$@" 2>&1 | tee "$log" | grep -vE '^\(pass\)'
  code=${PIPESTATUS[0]}
  keep_seconds "$name" "$begun"
  pass=$(sed -nE 's/^ *([0-9]+) pass$/\1/p' "$log" | tail -n 1)
  fail=$(sed -nE 's/^ *([0-9]+) fail$/\1/p' "$log" | tail -n 1)
  if [ "$code" -ne 0 ] && [ "${fail:-0}" -eq 0 ]; then fail=1; fi
  if [ "${fail:-0}" -ne 0 ]; then
    # The lines before the verdict on a test say what was wrong.
    { grep -vE '^\(pass\)' "$log" | grep -B 25 -E '^\(fail\)'; tail -n 8 "$log"; } |
      keep_failure "$name" 150
  fi
  durations_in "$log" >>"$durations"
  sed -nE '/^Passed at the second attempt:$/,/^$/ s/^  //p' "$log" >>"$second_attempts"
  passed=$((passed + ${pass:-0}))
  failed=$((failed + ${fail:-0}))
}

# Closes with the slowest tests, the duration of each step, what failed and what passed only at the
# second attempt. Returns 1 if anything failed.
close_steps() {
  end_beside
  if [ -s "$durations" ]; then
    note "the slowest tests"
    sort -rn "$durations" | head -n 40
  fi
  note "the slowest steps"
  sort -rn "$step_seconds" | head -n 20
  if [ "$failed" -ne 0 ]; then
    note "what failed"
    cat "$failures"
  fi
  if [ -s "$second_attempts" ]; then
    note "what passed at the second attempt"
    cat "$second_attempts"
  fi
  printf '\n%d passed, %d failed\n' "$passed" "$failed"
  [ "$failed" -eq 0 ]
}
