"""Holds the table of docs/robustness.md to the tests: each case names the files that test it, and those do.
usage: public_faults_test.py            checks
       public_faults_test.py --write    puts the files that mention a case into its row
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "docs" / "robustness.md"
ROW = re.compile(r"^\| (B\d{3}) \| (.*) \| (.*) \|$")
LEAST_ROWS = 60


def files_by_case():
    out = {}
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix in (".cpp", ".py") and path != pathlib.Path(__file__).resolve():
            for case in set(re.findall(r"(?<![0-9A-Za-z])[Bb](0\d\d)(?!\d)", path.read_text(encoding="utf-8"))):
                out.setdefault(f"B{case}", []).append(path.relative_to(ROOT / "tests").as_posix())
    return out


def main():
    found = files_by_case()
    faults, lines, n_rows = [], [], 0
    for line in TABLE.read_text(encoding="utf-8").split("\n"):
        row = ROW.match(line)
        if row:
            n_rows += 1
            case, what, files = row.groups()
            named = re.findall(r"`([^`]+)`", files)
            faults += [f"{case}: {name} does not mention it" for name in named if name not in found.get(case, [])]
            if not named and not files.startswith("none: "):
                faults.append(f'{case}: no test is named, expected files or "none: why"')
            if case in found:
                line = f"| {case} | {what} | {', '.join(f'`{name}`' for name in found[case])} |"
        lines.append(line)
    if "--write" in sys.argv[1:]:
        TABLE.write_text("\n".join(lines), encoding="utf-8")
        return
    if n_rows < LEAST_ROWS:
        faults.append(f"{TABLE.name} has {n_rows} rows, expected {LEAST_ROWS} or more")
    for fault in faults:
        print(f"docs/robustness.md: {fault}")
    print(f"{n_rows} cases, {sum(case in found for case in found)} with tests")
    sys.exit(bool(faults))


main()
