"""What differs from site to site: accounting (slurmdbd), a plugin that edits each job."""

from __future__ import annotations

import time

import pytest
from slurm_cluster import running
from slurm_steps import OVER, digests, done_shards, follow, jobs, naps, profile, wait_for

from artifacts_schema.errors import IngotError, UsageError
from artifacts_schema.store.gc import remove_artifact
from flows.recipe.dispatch import Dispatcher
from flows.recipe.execute import execute

__all__ = ["naps", "profile"]
pytestmark = [pytest.mark.faults, pytest.mark.full, pytest.mark.usefixtures("installed_stages")]


class TestAccounting:
    """A cluster whose jobs are charged: purged from slurmctld within a minute, kept by slurmdbd."""

    @pytest.fixture(scope="class")
    def cluster(self):
        settings = {"MinJobAge": "2", "AccountingStorageEnforce": "associations,limits,qos"}
        with running(settings=settings, accounting=True) as cluster:
            cluster.run("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxWall=00:30:00")
            yield cluster

    def test_a_recipe_makes_the_digests_of_a_run_here(
        self, open_pipeline, profile, inline, store, slurm
    ):
        plan = execute(open_pipeline(profile=profile()))
        made = digests(plan)
        assert len(made) == 6
        for step in plan.steps:
            remove_artifact(store, step.manifest)
        assert digests(execute(open_pipeline(), dispatch=inline)) == made

    @pytest.mark.parametrize(
        ("pool", "words"), [("charged", "Invalid account"), ("special", "Invalid qos")]
    )
    def test_an_account_or_qos_that_does_not_exist_is_refused_in_slurms_words(
        self, naps, slurm, pool, words
    ):
        with pytest.raises(UsageError, match=words) as caught:
            execute(naps(0.1, f"naps: {{pool: {pool}}}"))
        assert caught.value.exit_code == 2
        assert not jobs(slurm)

    def test_a_job_over_the_limit_of_its_qos_is_named(self, naps, slurm):
        began = time.monotonic()
        with pytest.raises(IngotError, match="QOSMaxWallDurationPerJobLimit"):
            execute(naps(0.1, "naps: {pool: cpu, time: 2 h}"))
        assert time.monotonic() - began < 30
        assert not jobs(slurm)

    def test_jobs_that_slurmctld_has_purged_are_known_by_accounting(self, naps, store, slurm):
        """Without it, one that a person cancelled would be submitted again after 90 s."""
        pipeline = naps(0.3)
        job = Dispatcher(pipeline.profile)(store, pipeline.plan().steps[0])
        wait_for(lambda: job.poll() is None and done_shards(store, pipeline) >= 2, 90)
        slurm.run("scancel", job.job)
        wait_for(lambda: job.job not in jobs(slurm, (*OVER, "RUNNING", "COMPLETING")), 150)
        wait_for(
            lambda: "CANCELLED" in slurm.output("sacct", "-X", "-n", "-j", job.job, "-o", "state")
        )
        assert follow(job, 30)[0] == 75
        assert "cancelled" in job.last_words()


PLUGIN = """\
function slurm_job_submit(job_desc, part_list, submit_uid)
  job_desc.comment = "charged to the physics department"
  job_desc.script = job_desc.script:gsub("^(#![^\\n]*\\n)", "%1echo edited by the site\\n", 1)
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
return slurm.SUCCESS
"""


class TestPlugin:
    """job_submit.lua changes the script of each job, and the comment by which it is found."""

    @pytest.fixture(scope="class")
    def cluster(self):
        files = {"job_submit.lua": PLUGIN}
        with running(settings={"JobSubmitPlugins": "lua"}, files=files) as cluster:
            yield cluster

    def test_a_second_run_that_cannot_find_the_job_waits_for_it_all_the_same(
        self, naps, store, slurm, monkeypatch
    ):
        monkeypatch.setattr("pools.cluster_job.LEASE_WAIT_SECONDS", 2)
        pipeline = naps(0.8)
        step = pipeline.plan().steps[0]
        first, second = (Dispatcher(pipeline.profile)(store, step) for _ in range(2))
        wait_for(lambda: first.poll() is None and done_shards(store, pipeline) >= 2, 90)
        wait_for(lambda: second.poll() is None and second.job is not None)
        assert second.job != first.job
        output = first.watch.scheduler.output(first.job, first.folder)
        assert output.startswith("edited by the site\n")
        assert follow(second)[0] == 0
        assert follow(first)[0] == 0
        wait_for(lambda: not jobs(slurm))
        assert jobs(slurm, OVER) == {first.job: "COMPLETED", second.job: "FAILED"}
