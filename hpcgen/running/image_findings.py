"""What is said of a finished image that is to be started at a site, of whose making nothing can be changed."""

from __future__ import annotations

import msgspec

from hpcgen.backends.engines import engine_for
from hpcgen.backends.hardware.mpi_abi import wanted_abi, whose
from hpcgen.core.errors import PolicyError
from hpcgen.core.model.plan import Finding, Plan
from hpcgen.recipe.bind_targets import bind_targets, data_targets


def check_mpi(plan: Plan) -> None:
    """The host's MPI can only take the place of one with the same binary interface."""
    block, host = plan.block("mpi"), plan.site.mpi
    if block is None or host is None or not plan.stack.run.mpi:
        return
    wanted = wanted_abi(host)
    if plan.mpi.abi not in ("", wanted):
        remedy = f"build it for this site: hpcgen build --site {plan.site.name} --stack {plan.stack.name}"
        message = (
            f"{block.name} {block.version} of the image cannot be replaced by the {host.flavour} of {plan.site.name}"
        )
        raise PolicyError(message, expected=f"an MPI with the binary interface of {whose(wanted)}", remedy=remedy)


def contract_findings(plan: Plan) -> list[Finding]:
    """What of the contract with the host can still be asked, as warnings: what is in the image is as it is."""
    from hpcgen.planning.contract.verdict import AT_START, case_of_plan, checks_of, findings_of

    found = findings_of(checks_of(case_of_plan(plan), only=AT_START))
    return [finding for finding in found if finding.severity == "warning"]


def onto_folders(recorded: Plan, plan: Plan) -> Plan:
    """Without the file systems for which the image has no folder, where the engine does not make one."""
    if not engine_for(plan.engine).targets_in_image:
        return plan
    made, replace = bind_targets(recorded), msgspec.structs.replace
    systems = {
        name: each if each.path in made else replace(each, bind=False) for name, each in plan.site.file_systems.items()
    }
    return replace(plan, site=replace(plan.site, file_systems=systems))


def bind_findings(recorded: Plan, plan: Plan) -> list[Finding]:
    """Folders of this site's MPI that an image which was built for another site has not."""
    # That of data is looked for in check_data.
    asked = {*bind_targets(plan)} - {*data_targets(plan)}
    missing = sorted(asked - {*bind_targets(recorded)})
    if not missing or not engine_for(plan.engine).targets_in_image:
        return []
    message = (
        f"the image was built for {recorded.site.name} and has no folder {', '.join(missing)} to bind the host's to"
    )
    remedy = f"if it does not start: hpcgen build --site {plan.site.name} --stack {plan.stack.name}"
    return [Finding(name="binds", severity="warning", message=message, remedy=remedy)]


def unseen_data(plan: Plan) -> list[Finding]:
    """What the image's record would have shown of this host."""
    run = plan.stack.run
    if not run.binds and not run.models:
        return []
    seen = [f"{', '.join(run.binds)} of the host"] if run.binds else []
    seen += [f"the models {', '.join(each.name for each in run.models)}"] if run.models else []
    message = f"the image was built for a stack that sees {' and '.join(seen)}"
    remedy = "start it in the folder of that stack, or add --bind"
    return [Finding(name="data", severity="note", message=message, remedy=remedy)]
