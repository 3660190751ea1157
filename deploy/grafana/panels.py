"""How panels look: three kinds, made from a title, a unit, queries and a description."""

from typing import List, NamedTuple, Optional

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")


class Query(NamedTuple):
    """PromQL, and the name of each of its series in the legend."""

    expr: str
    legend: str


class Look(NamedTuple):
    """What a graph may want besides. Values `below` or `above` are red."""

    logarithmic: bool = False
    stacked: bool = False
    from_zero: bool = True
    below: Optional[float] = None
    above: Optional[float] = None


def thresholds(look: Look) -> dashboard.ThresholdsConfig:
    """Red below or above the limit, green elsewhere."""
    steps = [model.Threshold(value=None, color="green")]
    if look.above is not None:
        steps.append(model.Threshold(value=look.above, color="red"))
    elif look.below is not None:
        steps = [model.Threshold(value=None, color="red"),
                 model.Threshold(value=look.below, color="green")]
    return dashboard.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(steps)


def with_queries(panel, queries: List[Query]):
    """Targets A, B, … in the order of the queries."""
    for i, query in enumerate(queries):
        panel.with_target(prometheus.Dataquery().expr(query.expr).legend_format(query.legend)
                          .range().ref_id(chr(ord("A") + i)))
    return panel.datasource(SOURCE)


def graph(title: str, unit: str, queries: List[Query], description: str,
          look: Look = Look()) -> timeseries.Panel:
    """Lines over time, a third of the screen wide."""
    panel = (timeseries.Panel().title(title).description(description).unit(unit)
             .height(6).span(8).line_width(1.5).fill_opacity(60 if look.stacked else 0)
             .show_points(common_model.VisibilityMode.AUTO).thresholds(thresholds(look))
             .legend(common.VizLegendOptions().show_legend(True).calcs([])
                     .display_mode(common_model.LegendDisplayMode.LIST)
                     .placement(common_model.LegendPlacement.BOTTOM))
             .tooltip(common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.MULTI)
                      .sort(common_model.SortOrder.DESCENDING)))
    if look.logarithmic:
        panel.scale_distribution(common.ScaleDistributionConfig()
                                 .type(common_model.ScaleDistribution.LOG).log(10))
    elif look.from_zero:
        panel.axis_soft_min(0)
    if look.stacked:
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL))
    if look.above is not None or look.below is not None:
        panel.thresholds_style(common.GraphThresholdsStyleConfig()
                               .mode(common_model.GraphTresholdsStyleMode.DASHED))
    return with_queries(panel, queries)


def number(title: str, unit: str, query: Query, description: str,
           look: Look = Look()) -> stat.Panel:
    """The last value, an eighth of the screen wide."""
    panel = (stat.Panel().title(title).description(description).unit(unit).height(4).span(3)
             .thresholds(thresholds(look))
             .color_mode(common_model.BigValueColorMode.VALUE)
             .graph_mode(common_model.BigValueGraphMode.NONE)
             .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"])))
    return with_queries(panel, [query])


def listing(title: str, expr: str, columns: List[str], description: str) -> table.Panel:
    """The labels `columns` of each series."""
    hidden = {"Time": True, "Value": True}
    order = {name: i for i, name in enumerate(columns)}
    return (table.Panel().title(title).description(description).unit("string")
            .height(6).span(8).datasource(SOURCE)
            .cell_height(common_model.TableCellHeight.SM)
            .with_target(prometheus.Dataquery().expr(expr).legend_format("").instant()
                         .format(PromQueryFormat.TABLE).ref_id("A"))
            .with_transformation(model.DataTransformerConfig(
                id_val="organize", options={"excludeByName": hidden, "indexByName": order})))
